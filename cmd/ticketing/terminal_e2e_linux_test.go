package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminalSession is a shell on a terminal of its own, as a person has one.
type terminalSession struct {
	t    *testing.T
	keys *os.File // what is written here is typed
	cmd  *exec.Cmd
	mu   sync.Mutex
	seen string
}

// onTerminal runs a script on a terminal, with "ticketing" in its path and its
// server in its environment.
func onTerminal(t *testing.T, s *server, shell ...string) *terminalSession {
	t.Helper()
	keys, screen := openTerminal(t)
	folder := t.TempDir()
	if err := os.Symlink(thisTest, filepath.Join(folder, "ticketing")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Env = append(os.Environ(), s.env(asProgram+"=1", "PATH="+folder+":"+os.Getenv("PATH"), "PS1=$ ")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	ts := &terminalSession{t: t, keys: keys, cmd: cmd}
	go ts.watch()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); keys.Close() })
	return ts
}

// openTerminal makes a terminal: what a person has of it, and what programs have.
func openTerminal(t *testing.T) (person, programs *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, programs
}

func (ts *terminalSession) watch() {
	buf := make([]byte, 1024)
	for {
		n, err := ts.keys.Read(buf)
		ts.mu.Lock()
		ts.seen += string(buf[:n])
		ts.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await returns when the screen shows text.
func (ts *terminalSession) await(text string) {
	ts.t.Helper()
	eventually(ts.t, fmt.Sprintf("%q on the screen", text), func() bool {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		return strings.Contains(ts.seen, text)
	})
}

func (ts *terminalSession) press(keys string) {
	ts.t.Helper()
	if _, err := ts.keys.WriteString(keys); err != nil {
		ts.t.Fatal(err)
	}
}

const ctrlC, ctrlZ = "\x03", "\x1a"

// The command reads from the terminal, and who started run reads again afterwards.
func TestTheCommandReadsFromTheTerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ts := onTerminal(t, s, "sh", "-c", `ticketing run k -- sh -c 'echo ready; read x; echo inner-$x'; read y; echo outer-$y`)
	ts.await("ready")
	ts.press("one\n")
	ts.await("inner-one")
	ts.press("two\n")
	ts.await("outer-two")
}

// Ctrl-C is for the command, which decides what to do about it.
func TestCtrlCGoesToTheCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ts := onTerminal(t, s, "sh", "-c", `ticketing run k -- sh -c 'trap "echo interrupted; exit 4" INT; echo ready; while :; do sleep 0.05; done'; echo code-$?`)
	ts.await("ready")
	ts.press(ctrlC)
	ts.await("interrupted")
	ts.await("code-4")
	wantFree(t, s, "k")
}

// With its output in a pipe run leaves the terminal to its neighbours, and passes
// Ctrl-C on.
func TestCtrlCInAPipeline(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ts := onTerminal(t, s, "sh", "-c", `trap : INT; ticketing run k -- sh -c 'trap "echo interrupted; exit 4" INT; echo ready; while :; do sleep 0.05; done' | (trap '' INT; cat)`)
	ts.await("ready")
	ts.press(ctrlC)
	ts.await("interrupted")
}

// A lease goes on, so a command under a lock is not suspended.
func TestCtrlZDoesNotSuspendTheCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ts := onTerminal(t, s, "sh", "-c", `ticketing run k -- sh -c 'echo ready; read x; echo got-$x'; echo code-$?`)
	ts.await("ready")
	ts.press(ctrlZ)
	ts.await("not suspended")
	ts.press("it\n")
	ts.await("got-it")
	ts.await("code-0")
}

// A run in a shell's background gets the terminal when the shell brings it to the
// front.
func TestTheForegroundFollowsTheShell(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	s := startServer(t)
	ts := onTerminal(t, s, bash, "--norc", "--noprofile", "-i")
	ts.press("ticketing run k -- sh -c 'echo rea''dy; read x; echo got-$x' &\n")
	ts.await("ready")
	ts.press("fg\n")
	ts.press("it\n")
	ts.await("got-it")
	ts.press("echo code''-$?\n")
	ts.await("code-0")
}

func TestBenchShowsItsProgressOnATerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ts := onTerminal(t, s, "sh", "-c", `trap : INT; ticketing bench --duration 60s --workers 2; echo code-$?`)
	ts.await("pairs/s")
	ts.press(ctrlC) // ends the measurement and prints it
	ts.await("held twice")
	ts.await("code-0")
}
