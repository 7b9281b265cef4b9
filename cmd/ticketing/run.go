package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/client"
)

// jobEnv is what run adds to the environment of its command.
var jobEnv = []envVar{
	{"TICKETING_KEY", "the key of the lock"},
	{"TICKETING_FENCE", "the fencing token, a decimal number"},
	{"TICKETING_DEADLINE", "when run begins to end the command, RFC 3339 in UTC"},
}

// deadlineFormat is RFC 3339 with milliseconds.
const deadlineFormat = "2006-01-02T15:04:05.000Z07:00"

// signalQueue is how many signals may wait to be passed on. A signal that finds it
// full is dropped, as the kernel drops one that is pending already.
const signalQueue = 16

// runFlags are the flags of run.
type runFlags struct {
	client    clientFlags
	times     lockFlags
	try       bool
	killAfter time.Duration
	killGiven bool
}

func newRun(p *program) *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:     "run KEY [flags] -- COMMAND [ARG...]",
		Short:   "Run a command under a lock, and end it before the lock ends",
		GroupID: groupLocks,
		Long: `A lease can't be renewed: a command has at most 250 seconds, less what it takes to
end it. Longer work can't be guarded by one lock; cut it into steps.

Takes the lock named KEY, runs the command, and gives the lock back when the command
and all that it started has ended. The command gets

  TICKETING_KEY       the key
  TICKETING_FENCE     the fencing token: have what you write to refuse a token that
                      is not greater than the last one it took
  TICKETING_DEADLINE  when run begins to end the command, as RFC 3339

and not TICKETING_TOKEN; a run within it takes the client token from
TICKETING_TOKEN_FILE.

A stuck command does not outlive its lock. Before the lease can end, every process of
the command is sent TERM, and --kill-after later KILL:

  lease      KILL at, before the lease's end    --kill-after by default
  1s         300ms                              100ms
  10s        1s                                 1s
  30s        2s                                 3s
  250s       2s                                 10s

A lock that was waited for may have up to a second of its lease less, since it is not
known to the moment when the lease began: ask for at least 3s then.

Signals HUP INT QUIT TERM USR1 USR2 WINCH CONT are passed on to the command's process
group. When run is killed, the command and all that it started is killed. What can
still outlive the lock: a process that begins a session of its own (setsid), one that
changes its user (sudo), what the command has others start (a daemon, a container,
another machine), and what it has started when run and its guard are killed together
(pkill -9 -f ticketing). run works on Linux only.

Exit codes:
` + exitCodeLines(runExitCodes),
		Example: `  ticketing run nightly-report --lease 250s -- ./report.sh
  ticketing run deploy --try -- make deploy
  ticketing run order-42 --wait 30s --lease 60s --kill-after 5s -- \
    sh -c 'psql -v fence="$TICKETING_FENCE" -f change.sql'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usageFault(cmd, errors.New("KEY -- COMMAND expected"))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.killGiven = cmd.Flags().Changed("kill-after")
			if flags.try {
				flags.times.wait = 0
			}
			return runJob(cmd, p, flags, args[0], args[1:])
		},
	}
	flags.times.add(cmd)
	cmd.Flags().BoolVar(&flags.try, "try", false, "one attempt, no waiting: the same as --wait 0s")
	cmd.Flags().DurationVar(&flags.killAfter, "kill-after", 0, "time between TERM and KILL (default a tenth of the lease, 100ms to 10s)")
	notBoth(cmd, "try", "wait")
	flags.client.add(cmd)
	return cmd
}

// runJob takes the lock, runs argv and gives the lock back.
func runJob(cmd *cobra.Command, p *program, flags runFlags, key string, argv []string) error {
	plan, err := planEnd(wholeSeconds(flags.times.lease), flags.killAfter, flags.killGiven)
	if err != nil {
		return usageFault(cmd, err)
	}
	// Before the lock is taken: others should not wait for a misspelled command.
	if _, err := exec.LookPath(argv[0]); err != nil {
		return notStarted(err)
	}
	broker, err := flags.client.connect(p)
	if err != nil {
		return runFault(cmd.Context(), err)
	}
	defer broker.Close()

	signals := make(chan os.Signal, signalQueue)
	catch(signals, passedOn)
	defer signal.Stop(signals)
	ticket, err := acquireForJob(cmd.Context(), broker, key, flags.times, plan, signals)
	if err != nil {
		return err
	}
	j := &job{
		argv:      argv,
		env:       slices.Concat(withoutSecret(p.env), jobEnviron(ticket, plan)),
		stdin:     p.stdin,
		stdout:    p.stdout,
		stderr:    p.stderr,
		remaining: ticket.Remaining,
		plan:      plan,
		signals:   signals,
		late: func(left []int) {
			leftOver(key, left, advice{"They may work on while somebody else holds the lock.", fmt.Sprintf("run goes on to kill them for %s.", afterLease)}).print(p.stderr, cmd.CommandPath())
		},
	}
	end, err := j.run()
	return finish(key, ticket, end, err)
}

// acquireForJob takes the lock. A signal ends the waiting.
func acquireForJob(ctx context.Context, broker *client.Broker, key string, times lockFlags, plan endPlan, signals <-chan os.Signal) (*client.Ticket, error) {
	ctx, stop := cancelOn(ctx, signals)
	ticket, err := broker.Acquire(ctx, key, times.wait, times.lease, plan.term)
	stop()
	if err != nil {
		return nil, runFault(ctx, err)
	}
	if ctx.Err() == nil {
		return ticket, nil
	}
	// The signal came just as the lock was got.
	err = fmt.Errorf("%w: %w", client.ErrCancelled, context.Cause(ctx))
	f := runFault(ctx, err)
	if release := ticket.Close(); release != nil {
		f.means = fmt.Sprintf("The lock could not be given back: %s. Its lease's end frees it.", release)
	}
	return nil, f
}

// withoutSecret leaves the client token out: a command has no use for it, and hands its
// environment on to all that it starts. A run below it reads TICKETING_TOKEN_FILE.
func withoutSecret(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, tokenEnv+"=") })
}

// jobEnviron is what the command is told of its lock.
func jobEnviron(ticket *client.Ticket, plan endPlan) []string {
	deadline := time.Now().Add(ticket.Remaining() - plan.term).UTC()
	return []string{
		"TICKETING_KEY=" + ticket.Key(),
		"TICKETING_FENCE=" + strconv.FormatUint(ticket.Token(), 10),
		"TICKETING_DEADLINE=" + deadline.Format(deadlineFormat),
	}
}

// finish gives the lock back and tells how the job ended. err says that no job was
// started.
func finish(key string, ticket *client.Ticket, end jobEnd, err error) error {
	if err == nil && (end.late || !end.gone) {
		ticket.Detach() // the lease's end frees the key, not a release while they work
		return outlived(key, end)
	}
	held := ticket.Remaining() > 0
	release := ticket.Release(context.Background()) // 5 s at most, by itself
	ticket.Detach()                                 // the broker need not try again
	if err != nil {
		return &fault{runError, err, advice{"The command was not started.", "Try again."}}
	}
	return ended(key, held, end, release)
}

// ended tells how a job ended whose lock was held until then, by the answer to its
// release.
func ended(key string, held bool, end jobEnd, release error) error {
	switch {
	case end.lost && !end.started:
		return &fault{runLost, fmt.Errorf("the lease of %q was about to end before the command could begin", key),
			advice{"The command was not started: run was stopped, or the machine too slow.", "Try again."}}
	case end.lost:
		return &fault{runLost, fmt.Errorf("the lease of %q was about to end, so the command was ended", key),
			advice{"Its work may be half done.", "Give it a longer --lease (at most 250s), or cut the work into steps."}}
	case errors.Is(release, client.ErrNotCurrent) && errors.Is(release, client.ErrIndeterminate):
		return &ending{code: end.exit, warning: &fault{end.exit, release,
			advice{"The command had ended under its lock, which is no longer held. The answer to a first attempt of the release was lost; it is most likely what gave the lock back.", "Nothing needs to be done."}}}
	case held && errors.Is(release, client.ErrNotCurrent):
		return &fault{runLost, release,
			advice{"The server lost the lock while the command ran, as when it was started again: somebody else may have held it too.", "Check the work that was done."}}
	}
	e := &ending{code: end.exit}
	if release != nil {
		e.warning = &fault{end.exit, release,
			advice{"The command had ended under its lock, but the lock may still be held.", "Nothing needs to be done: its lease's end frees it."}}
	}
	return e
}

// outlived tells how processes ended that were there after the lease's end.
func outlived(key string, end jobEnd) *fault {
	if end.gone {
		return &fault{runLost, fmt.Errorf("processes outlived the lease of %q and have been killed since", key),
			advice{"They may have worked while somebody else held the lock.", "Check the work that was done."}}
	}
	return leftOver(key, end.left, advice{"They may go on with their work while somebody else holds the lock.", "Look at them: a disk or network that hangs, or another user's process."})
}

// mostPIDs bounds how many processes a message names.
const mostPIDs = 10

// leftOver tells of processes that outlive the lock.
func leftOver(key string, pids []int, a advice) *fault {
	which := fmt.Sprintf("processes %v could not be killed", pids)
	if more := len(pids) - mostPIDs; more > 0 {
		which = fmt.Sprintf("processes %v and %d more could not be killed", pids[:mostPIDs], more)
	}
	if len(pids) == 0 {
		which = "it is not certain that all processes of its command are gone"
	}
	return &fault{runLost, fmt.Errorf("the lease of %q has ended and %s", key, which), a}
}
