package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// brokenPipe is a pipe that nobody reads.
func brokenPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

// A token that nobody reads must not keep the lock.
func TestAcquireIntoAPipeThatNobodyReads(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, args := range [][]string{{"acquire", "k"}, {"acquire", "k", "--json"}} {
		cmd := programCommand(s.env(), args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = brokenPipe(t), &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if code := waitExit(t, cmd); code != exitError || !strings.Contains(stderr.String(), "given back") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr.String())
		}
		if r := ticketing(t, s.env(), "release", "k", takeToken(t, s.env(), "k", "--wait", "0s")); r.code != exitOK {
			t.Fatalf("%v", r)
		}
	}
}

func TestAcquireWithAClosedOutput(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for redirection, want := range map[string]int{">&-": exitError, ">/dev/full": exitError, ">/dev/null": exitOK} {
		key := "k" + redirection
		cmd := exec.Command("sh", "-c", `exec "$0" acquire "$1" `+redirection, thisTest, key)
		cmd.Env = append(os.Environ(), s.env(asProgram+"=1")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if code := waitExit(t, cmd); code != want {
			t.Errorf("%s: exit code %d, want %d", redirection, code, want)
		}
		if want == exitError {
			wantFree(t, s, key)
		} else {
			wantHeld(t, s, key)
		}
	}
}

// A server whose log nobody reads any more goes on, and so do its locks.
func TestAServerOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t)
	addr := s.addr
	s.signal(syscall.SIGKILL)
	s.wait()
	cmd := programCommand(nil, "serve", "--listen", addr, "--log-level", "debug")
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	takeToken(t, s.env(), "k")
	r.Close()
	for range 3 { // what is logged
		cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(50 * time.Millisecond)
		wantHeld(t, s, "k")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if code := waitExit(t, cmd); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// The command does not get the client token, which it would hand on to all that it
// starts; the file's name it does.
func TestRunKeepsTheClientTokenFromTheCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file := writeFile(t, "token", "")
	env := s.env("TICKETING_TOKEN=not-for-commands", "TICKETING_TOKEN_FILE="+file)
	r := programResult(t, env, "run", "k", "--", "env")
	if r.code != 0 || strings.Contains(r.stdout, "not-for-commands") || !strings.Contains(r.stdout, "TICKETING_TOKEN_FILE="+file) {
		t.Errorf("%v", r)
	}
}

// Who is told that the waiting has ended is told by what.
func TestTheSignalThatEndsTheWaitingIsNamed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	takeToken(t, s.env(), "k", "--lease", "250s")
	for _, command := range [][]string{{"run", "k", "--wait", "100s", "--", "true"}, {"acquire", "k", "--wait", "100s"}} {
		cmd := programCommand(s.env(), command...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Process.Signal(syscall.SIGTERM) // as timeout does
		if code := waitExit(t, cmd); code == 143 && command[0] == "acquire" && stderr.Len() == 0 {
			t.Errorf("%v: killed by the same signal", command)
		}
		if text := stderr.String(); !strings.Contains(text, "terminated") || strings.Contains(text, "context canceled") {
			t.Errorf("%v: %s", command, text)
		}
	}
}
