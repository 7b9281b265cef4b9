package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// guardName is the command by which run starts its guard. It is not for people.
const guardName = "guard"

// guardTitle is what the list of processes calls the guard. "ticketing run" does not
// match its line, nor do run's key and command, which are not in it: who kills run by
// such a pattern leaves the guard to end the command.
const guardTitle = "ticketing-guard"

// guardOrder is what run tells its guard.
type guardOrder struct {
	KillAt     time.Duration // by bootTime, for the case that run is stopped or stuck
	Foreground bool          // the guard has the terminal, for the command
	Argv       [][]byte      // the command; bytes, since it may be no UTF-8
}

func rawStrings(ss []string) [][]byte {
	raw := make([][]byte, len(ss))
	for i, s := range ss {
		raw[i] = []byte(s)
	}
	return raw
}

func (o guardOrder) argv() []string {
	ss := make([]string, len(o.Argv))
	for i, s := range o.Argv {
		ss[i] = string(s)
	}
	return ss
}

// newGuard is the process between run and its command: run's child is the guard,
// whose child is the command. It sees run's end, whatever ended it, and then kills
// all that the command started. DESIGN.md says why.
func newGuard(p *program) *cobra.Command {
	return &cobra.Command{
		Use:                guardName,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			refusal := &fault{runError, errors.New("this command is for run alone"), advice{"Nothing was done.", `See "ticketing run --help".`}}
			if len(args) != 1 {
				return refusal
			}
			fd, err := strconv.Atoi(args[0])
			if err != nil || fd < 3 {
				return refusal
			}
			code, err := guard(p.stderr, os.NewFile(uintptr(fd), "control"))
			if err != nil {
				return err
			}
			return &ending{code: code}
		},
	}
}

// guard runs a command and returns its exit code when all that it started is gone.
// control brings the order, carries the command's group back, and closes when run
// ends.
func guard(stderr io.Writer, control *os.File) (int, error) {
	unix.CloseOnExec(int(control.Fd()))
	// A parent-death signal comes when the thread ends that started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ignoreSignals()
	// With its first timer the Go runtime opens a descriptor, and ends the program where
	// it can't: so before there is a command that could be left without a guard.
	time.Sleep(time.Nanosecond)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, notStarted(err)
	}
	var order guardOrder
	if err := json.NewDecoder(control).Decode(&order); err != nil {
		return 0, notStarted(fmt.Errorf("run ended before its command began: %w", err))
	}
	if len(order.Argv) == 0 {
		return 0, notStarted(errors.New("no command was given"))
	}
	argv := order.argv()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	if order.KillAt <= bootTime() {
		return runLost, nil // run says so; the lock may be another's by now
	}
	if err := cmd.Start(); err != nil {
		return 0, notStarted(err)
	}
	command := cmd.Process.Pid
	if order.Foreground {
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, command)
		unix.Kill(-command, unix.SIGCONT) // it may have been stopped for reading too early
	}
	fmt.Fprintln(control, command) // an error says that run is gone, and so does control
	f := &family{group: command, keep: command, alone: func() bool { return true }}
	var killing sync.Mutex // for one at a time
	var lost atomic.Bool
	go func() {
		waitForEnd(control, order.KillAt)
		lost.Store(true)
		killing.Lock()
		f.end(never)
		os.Exit(runLost)
	}()
	reaped := awaitCommand(stderr, command, &lost)
	killing.Lock()
	if reaped != nil {
		f.group, f.keep = 0, 0
		f.end(never)
		return shellStatus(*reaped), nil
	}
	f.end(never)
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(command, &status, syscall.WNOHANG, nil); pid != command {
		return 0, fmt.Errorf("wait for the command: %w", err)
	}
	return shellStatus(status), nil
}

func never([]int) bool { return false }

// ignoreSignals keeps the guard alive under the signals that a terminal or a job's
// owner sends to all that they see. They are caught, not ignored: what is ignored the
// command would inherit.
func ignoreSignals() {
	dropped := make(chan os.Signal, 1)
	catch(dropped, append([]os.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE}, passedOn...))
}

// waitForEnd returns when run has ended, or when killAt has come.
func waitForEnd(control io.Reader, killAt time.Duration) {
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, control)
		close(gone)
	}()
	for {
		left := killAt - bootTime()
		if left <= 0 {
			return
		}
		select {
		case <-gone:
			return
		case <-time.After(min(left, maxNap)):
		}
	}
}

// awaitCommand returns when the command has ended, or lost is set and something has
// ended. It reaps every other process that became the guard's child, but not the
// command: its number is its group's, and stays so while the group may be signalled.
// Only when the command ends at the very moment of a look, it is reaped here, and its
// status returned.
func awaitCommand(stderr io.Writer, command int, lost *atomic.Bool) *syscall.WaitStatus {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || lost.Load() || hasEnded(command) {
			return nil
		}
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		switch {
		case err != nil || pid != command:
		case !status.Stopped():
			return &status
		case status.StopSignal() == syscall.SIGTSTP:
			fmt.Fprintln(stderr, "ticketing run: a command under a lock is not suspended: its lease goes on")
			unix.Kill(-command, unix.SIGCONT)
		}
	}
}

// hasEnded is true when a child of this process has ended and was not reaped.
func hasEnded(child int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, child, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}
