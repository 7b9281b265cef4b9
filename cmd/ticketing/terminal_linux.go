package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal is the terminal that a command reads from. Its nil value is none.
//
// A terminal sends its Ctrl-C to, and is read by, one process group: the one in its
// foreground. The command has a group of its own, so run hands the terminal on.
type terminal struct {
	fd    int
	own   int // run's process group
	group int // the guard's, then the command's
	given bool
}

// newTerminal returns the terminal of stdin, for group. It is none where stdout is a
// pipe: run's neighbours in a pipeline, as a pager, need the terminal too; then run
// passes Ctrl-C on.
func newTerminal(stdin io.Reader, stdout io.Writer, group int) *terminal {
	in, ok := stdin.(*os.File)
	if !ok || isPipe(stdout) {
		return nil
	}
	return &terminal{fd: int(in.Fd()), own: unix.Getpgrp(), group: group}
}

// giveIfForeground hands the terminal over and returns true if run has it: at the
// start, and when a shell brings run from its background to the front.
func (t *terminal) giveIfForeground() bool {
	if t == nil {
		return false
	}
	// It fails on what is no terminal, or not the one of this session.
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil || group != t.own || unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.group) != nil {
		return false
	}
	t.given = true
	return true
}

// handTo names the group that has the terminal from now on.
func (t *terminal) handTo(group int) {
	if t != nil && group > 1 {
		t.group = group
	}
}

// takeBack makes run's group the foreground again, for who started it.
func (t *terminal) takeBack() {
	if t != nil && t.given {
		unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
}

func isPipe(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}
