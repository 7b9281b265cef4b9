//go:build e2e

package dashboards

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// patience bounds every wait for something that must come.
	patience = 90 * time.Second
	// stopTime is how long a cluster may take to drain.
	stopTime = 20 * time.Second
)

// output is what a process has written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run starts a process that gets a signal when the test ends, a second one when it does
// not heed it, and is killed at last.
func run(t *testing.T, cmd *exec.Cmd, end os.Signal) *output {
	t.Helper()
	log := new(output)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		for _, sig := range []os.Signal{end, end, os.Kill} {
			cmd.Process.Signal(sig)
			select {
			case <-ended:
				return
			case <-time.After(stopTime):
				t.Errorf("%s did not end by %v", filepath.Base(cmd.Path), sig)
			}
		}
	})
	return log
}

// freePorts returns a port that is free, as are those so far from it. It is outside of the
// range from which the kernel takes ports for connections.
func freePorts(t *testing.T, offsets ...int) int {
	t.Helper()
	const lowest, highest, step = 20000, 32000, 97
	begin := int(time.Now().UnixNano()/1000) % (highest - lowest)
	for i := range (highest - lowest) / step {
		port := lowest + (begin+i*step)%(highest-lowest)
		if !slices.ContainsFunc(offsets, func(offset int) bool { return !free(port + offset) }) {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

// eventually returns when nothing is missing any more.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v:\n%s", patience, what)
		}
	}
}
