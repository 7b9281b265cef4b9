package server

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A server that is out of file descriptors does not spin and does not end: it
// pauses 5 ms, doubling to 1 s, and goes on when there are some again. Clients that
// are connected are served meanwhile.
func TestFailedAcceptsNeitherSpinNorEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		w := newWorld(t, Config{Logger: debugLog(&log)})
		connected := w.connect()
		synctest.Wait()
		const failures = 11
		w.ln.mu.Lock()
		w.ln.faults = slices.Repeat([]error{fail("accept", syscall.EMFILE)}, failures)
		w.ln.asked = nil
		w.ln.mu.Unlock()

		w.connect() // taken by the accept under way; those after it fail
		connected.send(acquire("k", 0, 1, 7))
		connected.expect(granted("k", 1, 7))
		w.connect() // by the first that succeeds
		w.connect()

		var pauses []time.Duration
		w.ln.mu.Lock()
		for i := 1; i <= failures; i++ {
			pauses = append(pauses, w.ln.asked[i].Sub(w.ln.asked[i-1]))
		}
		w.ln.mu.Unlock()
		want := []time.Duration{
			5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond,
			80 * time.Millisecond, 160 * time.Millisecond, 320 * time.Millisecond, 640 * time.Millisecond,
			time.Second, time.Second, time.Second,
		}
		if !slices.Equal(pauses, want) {
			t.Errorf("paused %v, want %v", pauses, want)
		}
		if len(w.seen.failed) != failures || !errors.Is(w.seen.failed[0], syscall.EMFILE) {
			t.Errorf("the observer was told of %v", w.seen.failed)
		}
		if n := strings.Count(log.String(), "can't accept a connection"); n != 1 {
			t.Errorf("the trouble was logged %d times, want once:\n%s", n, &log)
		}
		if !strings.Contains(log.String(), "failed_accepts=11") {
			t.Errorf("the end of the trouble is not in the log:\n%s", &log)
		}

		// A later trouble begins with the short pause again.
		synctest.Wait()
		w.ln.mu.Lock()
		w.ln.faults = []error{fail("accept", syscall.EMFILE)}
		w.ln.mu.Unlock()
		w.connect()
		before := w.now()
		w.connect()
		if took := w.now() - before; took != acceptPauseMin {
			t.Errorf("the next trouble paused %v, want %v", took, acceptPauseMin)
		}
	})
}

// The end of accepting does not wait for the pause.
func TestTheEndWhileAcceptsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.connect()
		synctest.Wait()
		w.ln.mu.Lock()
		w.ln.faults = slices.Repeat([]error{fail("accept", syscall.EMFILE)}, 1000)
		w.ln.mu.Unlock()
		w.connect()
		time.Sleep(time.Minute + time.Millisecond)
		w.server.StopAccepting()
		synctest.Wait()
		if len(w.served) != 1 {
			t.Error("Serve pauses on")
		}
	})
}

// A listener that somebody else closes ends Serve with an error that names it.
func TestAListenerThatIsClosedUnderTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(&scripted{}, Config{MaxConnections: 4})
		ln := newMemListener()
		served := make(chan error)
		go func() { served <- s.Serve(ln) }()
		ln.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "accept on mem") {
			t.Errorf("Serve returned %v", err)
		}
	})
}

// A server may serve several listeners; a shutdown closes them all.
func TestSeveralListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		second := newMemListener()
		served := make(chan error)
		go func() { served <- w.server.Serve(second) }()
		w.connect()
		other := *w
		other.ln = second
		other.connect()
		if got := w.server.Connections(); got != 2 {
			t.Errorf("%d connections, want 2", got)
		}
		w.server.StopAccepting()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// syncBuffer is a buffer for a log.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
