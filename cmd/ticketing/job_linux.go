package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that run passes on to its command.
var passedOn = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
	unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT,
}

// maxNap is the longest sleep between two looks at the lease. Timers stand still
// while the machine sleeps and the lease does not, so the clock is asked again.
const maxNap = 200 * time.Millisecond

// run runs the job to its end: the command's own, or shortly before the lease's.
// It returns when no process of it is left, or afterLease too late. The error says
// that nothing was started.
func (j *job) run() (jobEnd, error) {
	// The time is read first: should run be stopped in between, the guard's clock is
	// too early rather than too late.
	now := bootTime()
	left := j.remaining()
	if left <= j.plan.term {
		return jobEnd{}, fmt.Errorf("only %s of the lease is left", left.Round(time.Millisecond))
	}
	// Processes whose parent ended become children of run, not of init, so that
	// they are found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return jobEnd{}, fmt.Errorf("become the reaper of the command's processes: %w", err)
	}
	g, err := j.startGuard()
	if err != nil {
		return jobEnd{}, err
	}
	defer g.release()
	tty := newTerminal(j.stdin, j.stdout, g.pid)
	foreground := tty.giveIfForeground() // the guard hands it on to the command's group
	defer tty.takeBack()
	// An error says that the guard has ended, and so does its end.
	_ = g.send(guardOrder{KillAt: now + left - j.plan.kill/2, Foreground: foreground, Argv: rawStrings(j.argv)})
	return j.supervise(g, tty), nil
}

// supervise passes signals on and ends the processes in time.
func (j *job) supervise(g *guardProcess, tty *terminal) jobEnd {
	var end jobEnd
	var strays sync.WaitGroup
	defer strays.Wait()
	terminate := func() {
		// By the clock, before anything is looked for.
		g.signal(unix.SIGTERM)
		g.signal(unix.SIGCONT) // a stopped process could not end
		f := family{group: g.group}
		strays.Go(f.terminateStrays)
	}
	started, signals := g.started, (<-chan os.Signal)(nil)
	for {
		left := j.remaining()
		if left <= j.plan.kill {
			end.lost = true
			j.endAll(g, &end)
			return end
		}
		if left <= j.plan.term && !end.lost {
			end.lost = true
			terminate()
		}
		if started == nil && tty.giveIfForeground() {
			g.signal(unix.SIGCONT) // it may have been stopped for reading
		}
		nap := left - j.plan.kill
		if !end.lost {
			nap = left - j.plan.term
		}
		select {
		case group := <-started:
			started, signals = nil, j.signals
			g.group, end.started = group, group != 0
			tty.handTo(group)
			if end.lost {
				terminate()
			}
		case err := <-g.done:
			g.ended = true
			if started != nil {
				end.started = <-started != 0 // closed at the latest by the guard's end
			}
			// A run that was stopped finds out late, and its guard may have ended the
			// command.
			end.lost = end.lost || j.remaining() <= j.plan.kill
			end.exit = exitStatus(err)
			j.endAll(g, &end)
			return end
		case sig := <-signals:
			g.signal(sig.(syscall.Signal))
		case <-time.After(min(nap, maxNap)):
		}
	}
}

// endAll kills all that is left of the job. The guard is killed as well: run is then
// the only one that adopts and reaps processes, and knows when none is left.
func (j *job) endAll(g *guardProcess, end *jobEnd) {
	f := family{group: g.group, alone: g.hasEnded}
	if g.hasEnded() && !isChild(f.group) {
		f.group = 0 // reaped by the guard: the number may be another's
	}
	f.killGroup()
	g.kill()
	var until time.Duration
	end.gone = f.end(func(left []int) bool {
		if j.remaining() > 0 {
			return false
		}
		end.left = left
		if !end.late {
			end.late, until = true, bootTime()+afterLease
			j.late(left)
		}
		return bootTime() >= until
	})
}

// isChild is true for a child of this process that was not reaped.
func isChild(pid int) bool {
	return pid > 0 && unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil
}

// thisProgram is the file of this very process, even when another version has been
// put in its place.
const thisProgram = "/proc/self/exe"

// guardProcess is the process between run and its command (see guard).
type guardProcess struct {
	pid     int
	group   int // the command's process group; 0 until it has started
	ended   bool
	control *os.File
	started chan int   // the command's group, once; 0 when it was not started
	done    chan error // the guard's end; it has room for one
}

// startGuard starts the guard in a process group of its own. It starts the command
// when it has its order.
func (j *job) startGuard() (*guardProcess, error) {
	// A descriptor number that is free, rather than the first three: the command
	// may have been given further descriptors by who started run.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	defer unix.Close(pair[1])
	if err := errors.Join(unix.SetNonblock(pair[0], true), clearCloseOnExec(pair[1])); err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("start the command: %w", err)
	}
	control := os.NewFile(uintptr(pair[0]), "control")
	cmd := exec.Command(thisProgram, guardName, strconv.Itoa(pair[1]))
	cmd.Args[0] = guardTitle
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = j.env, j.stdin, j.stdout, j.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		control.Close()
		return nil, fmt.Errorf("start the command: %w", err)
	}
	// From here on run may be in the terminal's background, where it must neither
	// be stopped for its messages nor for handing the terminal on, and must not die
	// of a message that nobody reads. Not earlier: a command would inherit it.
	signal.Ignore(unix.SIGTTOU, unix.SIGTTIN, unix.SIGTSTP, unix.SIGPIPE)
	g := &guardProcess{pid: cmd.Process.Pid, control: control, started: make(chan int, 1), done: make(chan error, 1)}
	go func() {
		defer close(g.started)
		var group int
		if _, err := fmt.Fscanln(control, &group); err == nil {
			g.started <- group
		}
	}()
	go func() { g.done <- cmd.Wait() }()
	return g, nil
}

func clearCloseOnExec(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	return err
}

// send tells the guard what to do.
func (g *guardProcess) send(o guardOrder) error { return json.NewEncoder(g.control).Encode(o) }

// signal signals the command's process group.
func (g *guardProcess) signal(sig syscall.Signal) {
	if g.group > 1 {
		unix.Kill(-g.group, sig)
	}
}

// kill kills the guard itself.
func (g *guardProcess) kill() {
	if !g.hasEnded() {
		unix.Kill(g.pid, unix.SIGKILL)
	}
}

// hasEnded is true when the guard is gone, so that what it left is run's.
func (g *guardProcess) hasEnded() bool {
	select {
	case <-g.done:
		g.ended = true
	default:
	}
	return g.ended
}

// release lets the guard go; it ends every process that it has.
func (g *guardProcess) release() { g.control.Close() }

// bootTime is the time since the machine started, its sleep included. It is the
// same in every process.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // Linux has had it since 2.6.39
	}
	return time.Duration(ts.Nano())
}

// exitStatus is a process's exit code as a shell gives it.
func exitStatus(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return shellStatus(e.Sys().(syscall.WaitStatus))
	}
	return runError
}

func shellStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return signalBase + int(s.Signal())
	}
	return s.ExitStatus()
}
