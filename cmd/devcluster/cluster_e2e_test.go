package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must come.
const patience = 30 * time.Second

// How a process of the test binary plays a node instead: "serve" runs until TERM,
// "deaf" does not heed it, "broken" ends at once.
const asNode = "DEVCLUSTER_TEST_AS_NODE"

func TestMain(m *testing.M) {
	if how := os.Getenv(asNode); how != "" {
		playNode(how)
	}
	os.Exit(m.Run())
}

func playNode(how string) {
	config := os.Args[len(os.Args)-1]
	name := strings.TrimSuffix(filepath.Base(config), ".toml")
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	if how == "broken" {
		fmt.Fprintln(os.Stderr, "can't serve")
		os.Exit(1)
	}
	if err := os.MkdirAll(strings.TrimSuffix(config, ".toml"), 0o700); err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, "serving as", name)
	<-told
	if how == "deaf" {
		<-told
	}
	fmt.Fprint(os.Stderr, "stopped ", name) // a last line without an end
	os.Exit(0)
}

// run is a cluster under test and the terminal it has.
type run struct {
	t       *testing.T
	folder  folder
	typing  io.WriteCloser
	signals chan os.Signal
	ended   chan error

	mu     sync.Mutex
	screen strings.Builder
}

// start runs a cluster of nodes that this test plays.
func start(t *testing.T, how string) *run {
	t.Helper()
	t.Setenv(asNode, how)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, program, func(r *run) func(context.Context) error {
		if how == "broken" {
			return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}
		return func(context.Context) error {
			for _, name := range names[:beginners] {
				r.await(name + " | serving as " + name)
			}
			return nil
		}
	})
}

// begin runs a cluster of nodes of a program. ready makes what waits for it to serve.
func begin(t *testing.T, program string, ready func(*run) func(context.Context) error) *run {
	t.Helper()
	in, typing := io.Pipe()
	r := &run{t: t, folder: laidOut(t), typing: typing, signals: make(chan os.Signal, signalQueue), ended: make(chan error, 1)}
	c := newCluster(r.folder, program, r)
	c.ready = ready(r)
	go func() { r.ended <- c.run(names[:beginners], in, r.signals) }()
	t.Cleanup(func() {
		typing.Close()
		r.signals <- os.Interrupt
		select {
		case err := <-r.ended:
			r.ended <- err
		case <-time.After(patience):
			t.Error("the cluster did not end")
		}
	})
	return r
}

// Write takes what a person sees.
func (r *run) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.screen.Write(p)
}

func (r *run) seen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.screen.String()
}

// await returns when a person has seen text.
func (r *run) await(text string) {
	r.awaitTimes(text, 1)
}

func (r *run) awaitTimes(text string, times int) {
	for end := time.Now().Add(patience); strings.Count(r.seen(), text) < times; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Errorf("%q was not seen in:\n%s", text, r.seen())
			return
		}
	}
}

func (r *run) typed(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.typing, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// pid reads a node's process id as a person's kill would.
func (r *run) pid(name string) int {
	r.t.Helper()
	text, err := os.ReadFile(r.folder.node(name).pid)
	if err != nil {
		r.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

// end waits for the cluster's end and returns its error.
func (r *run) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(patience):
		r.t.Fatal("the cluster did not end")
		return nil
	}
}

func TestCtrlCEndsTheNodesOneAfterTheOther(t *testing.T) {
	r := start(t, "serve")
	r.await("export TICKETING_ADDR=")
	r.signals <- os.Interrupt
	if err := r.end(); err != nil {
		t.Error(err)
	}
	at := 0
	for _, want := range []string{"n1 | stopped n1\n", "n1 has stopped", "n2 | stopped n2\n", "n2 has stopped", "n3 | stopped n3\n", "n3 has stopped"} {
		next := strings.Index(r.seen()[at:], want)
		if next < 0 {
			t.Fatalf("%q does not follow in:\n%s", want, r.seen())
		}
		at += next
	}
}

func TestAKilledNodeIsToldAndStartsAgainWhenItsNameIsTyped(t *testing.T) {
	r := start(t, "serve")
	r.await("export TICKETING_ADDR=")
	first := r.pid("n2")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("n2 has ended (signal: killed); 2 of 3 still run; type n2")
	if _, err := os.Stat(r.folder.node("n2").pid); !os.IsNotExist(err) {
		t.Errorf("the file with its pid is still there (%v)", err)
	}
	r.typed("n1")
	r.await("n1 runs already")
	r.typed("n2")
	r.awaitTimes("n2 | serving as n2", 2)
	if again := r.pid("n2"); again == first {
		t.Errorf("pid %d again", again)
	}
}

func TestASpareNodeStartsWhenItsNameIsTyped(t *testing.T) {
	r := start(t, "serve")
	r.await("export TICKETING_ADDR=")
	r.typed("n4")
	r.await("n4 | serving as n4")
	r.typed("")
	r.awaitTimes("export TICKETING_ADDR=", 2)
}

func TestASecondCtrlCKills(t *testing.T) {
	r := start(t, "deaf")
	r.await("export TICKETING_ADDR=")
	r.signals <- os.Interrupt
	r.await("once more ends them at once")
	r.signals <- os.Interrupt
	if err := r.end(); err != nil {
		t.Error(err)
	}
	for _, name := range names[:beginners] {
		r.await(name + " has stopped (signal: killed)")
	}
}

func TestNodesThatCantServeEndTheCluster(t *testing.T) {
	r := start(t, "broken")
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "every node has ended") {
		t.Errorf("got %v", err)
	}
	r.await("n1 | can't serve")
}

func TestAPortInUseIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	err = command([]string{"-dir", t.TempDir(), "-port", strconv.Itoa(port)}, strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "choose another -port") {
		t.Errorf("got %v", err)
	}
}
