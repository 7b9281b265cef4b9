package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runResult runs "ticketing run" to its end.
func runResult(t *testing.T, s *server, args ...string) result {
	t.Helper()
	return programResult(t, s.env(), append([]string{"run"}, args...)...)
}

// startedRun is a "ticketing run" that goes on.
type startedRun struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *lines
	stderr *lines
}

func startRun(t *testing.T, s *server, args ...string) *startedRun {
	t.Helper()
	r := &startedRun{t: t, cmd: programCommand(s.env(), append([]string{"run"}, args...)...)}
	r.stdout, r.stderr = readLines(t, &r.cmd.Stdout), readLines(t, &r.cmd.Stderr)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
	return r
}

func (r *startedRun) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

func (r *startedRun) wait() int { return waitExit(r.t, r.cmd) }

// announced returns the process number that the command printed behind name.
func (r *startedRun) announced(name string) int {
	r.t.Helper()
	line := r.stdout.await(name + "=")
	pid, err := strconv.Atoi(strings.TrimPrefix(line, name+"="))
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

// guard returns the process number of the guard.
func (r *startedRun) guard() int {
	r.t.Helper()
	return childOf(r.t, r.cmd.Process.Pid)
}

// childOf waits for a child of a process and returns its number.
func childOf(t *testing.T, parent int) (child int) {
	t.Helper()
	eventually(t, "a child", func() bool {
		all, _ := readProcesses()
		for pid, p := range all {
			if p.parent == parent {
				child = pid
			}
		}
		return child != 0
	})
	return child
}

// lives tells whether a process does anything.
func lives(pid int) bool {
	all, _ := readProcesses()
	p, ok := all[pid]
	return ok && !p.ended
}

func wantGone(t *testing.T, what string, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if lives(pid) {
			t.Errorf("%s: process %d lives on", what, pid)
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func wantFree(t *testing.T, s *server, key string) {
	t.Helper()
	takeToken(t, s.env(), key, "--wait", "0s")
}

func wantHeld(t *testing.T, s *server, key string) {
	t.Helper()
	if r := ticketing(t, s.env(), "acquire", key, "--wait", "0s"); r.code != exitTimeout {
		t.Errorf("the key should be held: %v", r)
	}
}

func TestRunTellsTheCommandOfItsLock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	before := time.Now()
	first := number(t, takeToken(t, s.env(), "another"))
	r := runResult(t, s, "order-42", "--lease", "20s", "--", "sh", "-c", `echo "$TICKETING_KEY $TICKETING_FENCE $TICKETING_DEADLINE"`)
	fields := strings.Fields(r.stdout)
	if r.code != 0 || r.stderr != "" || len(fields) != 3 {
		t.Fatalf("%v", r)
	}
	if fields[0] != "order-42" || number(t, fields[1]) <= first {
		t.Errorf("key %s, token %s", fields[0], fields[1])
	}
	deadline, err := time.Parse(time.RFC3339, fields[2])
	if err != nil || deadline.Before(before) || deadline.After(time.Now().Add(20*time.Second)) || !strings.Contains(fields[2], ".") {
		t.Errorf("deadline %s, %v", fields[2], err)
	}
	wantFree(t, s, "order-42")
}

func TestRunGivesTheCommandsExitCode(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -9 $$": 137, "kill -15 $$": 143} {
		if r := runResult(t, s, "k", "--", "sh", "-c", script); r.code != want || r.stderr != "" {
			t.Errorf("%s: want %d: %v", script, want, r)
		}
	}
	wantFree(t, s, "k")
}

func TestRunPassesInputOutputAndDescriptorsThrough(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := programCommand(s.env(), "run", "k", "--", "sh", "-c", "cat; echo to stderr >&2; echo to three >&3")
	cmd.Stdin = strings.NewReader("from stdin\n")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &stdout, &stderr, []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if code := waitExit(t, cmd); code != 0 || stdout.String() != "from stdin\n" || stderr.String() != "to stderr\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
	three := make([]byte, 100)
	n, _ := r.Read(three)
	if string(three[:n]) != "to three\n" {
		t.Errorf("descriptor 3 got %q", three[:n])
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, sig := range []struct {
		name   string
		number syscall.Signal
	}{{"HUP", unix.SIGHUP}, {"INT", unix.SIGINT}, {"QUIT", unix.SIGQUIT}, {"TERM", unix.SIGTERM}, {"USR1", unix.SIGUSR1}, {"USR2", unix.SIGUSR2}} {
		t.Run(sig.name, func(t *testing.T) {
			r := startRun(t, s, "k-"+sig.name, "--", "sh", "-c", `trap 'echo got `+sig.name+`; exit 9' `+sig.name+`; echo ready; while :; do sleep 0.05; done`)
			r.stdout.await("ready")
			r.signal(sig.number)
			r.stdout.await("got " + sig.name)
			if code := r.wait(); code != 9 {
				t.Errorf("exit code %d", code)
			}
			wantFree(t, s, "k-"+sig.name)
		})
	}
}

// What run was started to ignore, as by nohup, its command ignores as well.
func TestRunKeepsIgnoredSignalsIgnored(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec "$0" run k -- sh -c 'kill -HUP $$; echo alive'`, thisTest)
	cmd.Env = append(os.Environ(), append(s.env(), asProgram+"=1")...)
	out, err := cmd.Output()
	if err != nil || string(out) != "alive\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRunWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	takeToken(t, s.env(), "held", "--lease", "250s")
	for _, c := range []struct {
		name string
		args string
		want int
	}{
		{"try of a held key", "held --try -- echo ran", runTimeout},
		{"wait of a held key", "held --wait 1s -- echo ran", runTimeout},
		{"bad key", "a\nb -- echo ran", runError},
		{"bad lease", "k --lease 251s -- echo ran", runError},
		{"bad wait", "k --wait 256s -- echo ran", runError},
		{"no such server", "k --wait 1s --addr 127.0.0.1:1 -- echo ran", runError},
		{"no such command", "k -- no-such-command-anywhere", runNotStarted},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runResult(t, s, strings.Split(c.args, " ")...)
			if r.code != c.want || r.stdout != "" || r.stderr == "" {
				t.Errorf("want %d: %v", c.want, r)
			}
		})
	}
	wantFree(t, s, "k")
}

// A command that can't be executed is found out under the lock, which is given back.
func TestRunOfAFileThatIsNoProgram(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file := writeFile(t, "noprogram", "\x7fELF and nothing else")
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	if r := runResult(t, s, "k", "--", file); r.code != runNotStarted || !strings.Contains(r.stderr, "ticketing run: ") {
		t.Errorf("%v", r)
	}
	wantFree(t, s, "k")
}

// A signal while run waits for the lock ends it with the shell's code, or says that
// the lock may have been taken; it is not kept.
func TestASignalEndsTheWaiting(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	token := takeToken(t, s.env(), "k", "--lease", "250s")
	r := startRun(t, s, "k", "--wait", "100s", "--", "echo", "ran")
	time.Sleep(300 * time.Millisecond) // whether it has asked by now or not, is the same to the user
	r.signal(unix.SIGTERM)
	if code := r.wait(); code != 143 && code != runIndeterminate {
		t.Errorf("exit code %d\n%s", code, r.stderr)
	}
	if r.stdout.String() != "" {
		t.Error("the command ran")
	}
	if r := ticketing(t, s.env(), "release", "k", token); r.code != exitOK {
		t.Fatalf("%v", r)
	}
	takeToken(t, s.env(), "k", "--wait", "5s")
}
