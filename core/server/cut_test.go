package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
)

// crowded is a Service whose release lane is full: a release waits until its
// session leaves, as service.Release says.
type crowded struct {
	*scripted
	mu   sync.Mutex
	left map[*service.Session]chan struct{}
}

func newCrowded() *crowded {
	return &crowded{scripted: &scripted{}, left: make(map[*service.Session]chan struct{})}
}

func (f *crowded) Open(sink service.Sink, holder string) *service.Session {
	c := f.scripted.Open(sink, holder)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[c] = make(chan struct{})
	return c
}

func (f *crowded) Release(c *service.Session, key string, token uint64) {
	f.mu.Lock()
	left := f.left[c]
	f.mu.Unlock()
	<-left
}

func (f *crowded) Leave(c *service.Session) {
	f.scripted.Leave(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.left[c]:
	default:
		close(f.left[c])
	}
}

// A connection whose reading waits for the release lane waits until there is room
// or it closes: a shutdown whose time is over cuts it, and is over then.
func TestAConnectionInTheReleaseLaneIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, newCrowded(), Config{})
		c := w.connect()
		c.send(release("k", 1))
		synctest.Wait()
		start := w.now()
		if err := w.shutdown(3 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown returned %v, want that its time was over", err)
		}
		if took := w.now() - start; took != 3*time.Second {
			t.Errorf("Shutdown took %v, want its 3 s", took)
		}
		w.seen.expect(t, map[CloseReason]int{ClosedDrain: 1})
	})
}

// So does one that is too slow meanwhile, and its undelivered grants go back.
func TestASlowConnectionInTheReleaseLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := newCrowded()
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		c.send(release("k", 1))
		synctest.Wait()
		c.end.setWindow(0)
		grant(svc.sink(), "begun", 2)
		synctest.Wait()
		grant(svc.sink(), "queued", 3)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		svc.expectAbandoned(t, "queued 3")
		w.seen.expect(t, map[CloseReason]int{ClosedSlow: 1})
	})
}

// Nothing more is asked for a connection that was closed in the middle of what it
// sent.
func TestNothingIsAskedForAClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := &scripted{onRelease: func(sink service.Sink, key string, token uint64) {
			sink.(*conn).abort(ClosedSlow)
		}}
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		c.send(strings.Repeat(release("k", 1), 100))
		synctest.Wait()
		if got := svc.count(); got != 1 {
			t.Errorf("%d requests were asked, want none behind the first", got)
		}
	})
}

// A connection counts until nobody writes to it any more: whoever does is waited for.
func TestAConnectionEndsAfterItsLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{})
		w.connect()
		c := svc.sink().(*conn)
		c.Deliver(service.Answer{Outcome: service.TimedOut, Key: "k"})
		batch := make([]byte, 0, 1000)
		if !c.take(&batch) {
			t.Fatal("no write has begun")
		}
		c.abort(ClosedSlow)
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{})
		c.wrote(nil)
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedSlow: 1})
	})
}
