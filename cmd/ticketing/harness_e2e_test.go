package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests for something that must come. It is no
// promise: what comes in time comes long before.
const patience = 30 * time.Second

// programCommand is a process of this program.
func programCommand(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(thisTest, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// server is a running "ticketing serve".
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	log  *lines
	out  *lines // the standard output
}

// startServer starts a server and returns when it serves.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: programCommand(nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...)...)}
	s.log, s.out = readLines(t, &s.cmd.Stderr), readLines(t, &s.cmd.Stdout)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	})
	var serving struct{ Listen string }
	line := s.log.await(`"msg":"serving"`)
	if err := json.Unmarshal([]byte(line), &serving); err != nil {
		t.Fatal(err)
	}
	s.addr = serving.Listen
	return s
}

// env has the client commands ask this server.
func (s *server) env(more ...string) []string {
	return append([]string{"TICKETING_ADDR=" + s.addr}, more...)
}

// signal sends a signal.
func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// wait returns the exit code.
func (s *server) wait() int { return waitExit(s.t, s.cmd) }

// waitExit waits for the end of a process and returns its exit code as a shell
// gives it.
func waitExit(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		var e *exec.ExitError
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return signalBase + int(status.Signal())
		}
		return status.ExitStatus()
	case <-time.After(patience):
		cmd.Process.Kill()
		t.Fatalf("%v did not end", cmd.Args)
		return 0
	}
}

// lines collects the lines that a process writes.
type lines struct {
	t    *testing.T
	mu   sync.Mutex
	all  []string
	more chan struct{} // closed and made anew at each line
}

// readLines has a process write into a collector.
func readLines(t *testing.T, to *io.Writer) *lines {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	*to = w
	l := &lines{t: t, more: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		scan := bufio.NewScanner(r)
		for scan.Scan() {
			l.mu.Lock()
			l.all = append(l.all, scan.Text())
			close(l.more)
			l.more = make(chan struct{})
			l.mu.Unlock()
		}
	}()
	t.Cleanup(func() { // after the process's own, which is registered later
		w.Close()
		r.SetReadDeadline(time.Now())
		<-done
		r.Close()
	})
	return l
}

// await returns the first line that contains text.
func (l *lines) await(text string) string {
	l.t.Helper()
	timeout := time.After(patience)
	for {
		l.mu.Lock()
		all, more := l.all, l.more
		l.mu.Unlock()
		for _, line := range all {
			if strings.Contains(line, text) {
				return line
			}
		}
		select {
		case <-more:
		case <-timeout:
			l.t.Fatalf("no line contains %q; there are:\n%s", text, strings.Join(all, "\n"))
		}
	}
}

// String returns what has come.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// eventually returns when condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// takeToken acquires a key through the command line and returns the token.
func takeToken(t *testing.T, env []string, args ...string) string {
	t.Helper()
	r := ticketing(t, env, append([]string{"acquire"}, args...)...)
	if r.code != exitOK {
		t.Fatalf("acquire %v: %v", args, r)
	}
	return strings.TrimSpace(r.stdout)
}

// program runs a command line as a process to its end.
func programResult(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd := programCommand(env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code := waitExit(t, cmd)
	return result{code, stdout.String(), stderr.String()}
}
