package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/control"
)

// program is what a command has of the world outside, so that a test can stand
// in for it.
type program struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    []string     // as os.Environ gives it
	dial   control.Dial // to a cluster's nodes; nil for the nodes' link
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	return (&program{stdin: stdin, stdout: stdout, stderr: stderr, env: env}).execute(ctx, args)
}

// execute executes one command line and returns its exit code.
func (p *program) execute(ctx context.Context, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	name := cmd.CommandPath()
	if cmd.Name() == guardName {
		name = "ticketing run" // for which it speaks
	}
	var e *ending
	if errors.As(err, &e) {
		if e.warning != nil {
			e.warning.print(p.stderr, name)
		}
		return e.code
	}
	var f *fault
	if !errors.As(err, &f) {
		// Only cobra returns other errors: an unknown command or a bad argument.
		f = usageFault(cmd, err)
		if similar := root.SuggestionsFor(args[0]); cmd == root && len(similar) > 0 {
			f.todo = fmt.Sprintf("Did you mean %q?", "ticketing "+similar[0])
		}
	}
	f.print(p.stderr, name)
	return f.exit
}

// lookupEnv returns the value of an environment variable and whether it is set, as
// os.LookupEnv does. Of one that is set twice the last counts.
func (p *program) lookupEnv(name string) (value string, ok bool) {
	for _, e := range p.env {
		if v, found := strings.CutPrefix(e, name+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

// getenv returns the value of an environment variable, or "".
func (p *program) getenv(name string) string {
	value, _ := p.lookupEnv(name)
	return value
}

const (
	groupServer  = "server"
	groupLocks   = "locks"
	groupCluster = "cluster"
	groupTools   = "tools"
)

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "ticketing",
		Short: "A lock server with leases, fair waiting and fencing tokens",
		Long: `Ticketing is a lock server: a process takes a named lock for a lease of at most
250 seconds, others wait their turn, and every grant carries a fencing token
greater than all before it.

A lease can't be renewed: work that is longer than 250 s can't be guarded by one
lock.`,
		Example: `  ticketing serve
  ticketing run nightly-report -- ./report.sh
  TOKEN=$(ticketing acquire order-42) && ticketing release order-42 $TOKEN`,
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableSuggestions:         true, // run makes them
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageFault(cmd, err) })
	root.AddGroup(
		&cobra.Group{ID: groupServer, Title: "Server:"},
		&cobra.Group{ID: groupLocks, Title: "Locks:"},
		&cobra.Group{ID: groupCluster, Title: "Cluster:"},
		&cobra.Group{ID: groupTools, Title: "Tools:"},
	)
	root.SetHelpCommandGroupID(groupTools)
	root.SetCompletionCommandGroupID(groupTools)
	root.AddCommand(
		newServe(p), newCheckConfig(p), newRun(p), newAcquire(p), newRelease(p), newBench(p), newVersion(p), newGuard(p),
		newMembers(p), newSnapshot(p), newRecover(p),
		exitCodesTopic(), environmentTopic(),
	)
	return root
}

// exitCodesTopic is "ticketing help exit-codes".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What each exit code means",
		Long: "Every command but those below:\n\n" + exitCodeLines(exitCodes) +
			"\nmembers, snapshot and recover:\n\n" + exitCodeLines(clusterExitCodes) +
			"\nrun:\n\n" + exitCodeLines(runExitCodes),
	}
}

// environmentTopic is "ticketing help environment".
func environmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The client commands (run, acquire, release, bench) read, unless a flag says\notherwise:\n\n")
	for _, v := range clientEnv {
		fmt.Fprintf(&b, "  %-22s  %s\n", v.name, v.text)
	}
	b.WriteString("\nrun gives to its command:\n\n")
	for _, v := range jobEnv {
		fmt.Fprintf(&b, "  %-22s  %s\n", v.name, v.text)
	}
	b.WriteString("\nserve reads every key of its configuration: see \"ticketing serve --help\".\n")
	return &cobra.Command{Use: "environment", Short: "The environment variables", Long: b.String()}
}

// envVar is an environment variable and what it is for.
type envVar struct{ name, text string }

// exactArgs refuses any other number of arguments than the names given.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usageFault(cmd, fmt.Errorf("%s expected, %d given", count(len(names), "argument", names), len(args)))
	}
}

func count(n int, noun string, names []string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "1 " + noun + " (" + names[0] + ")"
	}
	return fmt.Sprintf("%d %ss (%s)", n, noun, strings.Join(names, " "))
}
