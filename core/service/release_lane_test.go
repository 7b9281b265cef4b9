package service

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A release of token 0 is answered behind every grant to its session that was under
// way when it came, and waits for no later one.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.release("a", 0)
		a.want("0s N a token=0") // without an entry
		w.wantUnderWay()

		a.acquire(1, "a", 60*time.Second, 30*time.Second) // under way
		a.acquire(2, "b", 60*time.Second, 30*time.Second) // goes into the next entry
		b.release("a", 0)
		b.want("0s N a token=0") // nothing of b's is
		a.release("b", 0)
		a.release("a", 0)
		a.want()

		w.commit()
		a.want("0s A a owner=1 token=1", "0s N b token=0", "0s N a token=0")
		a.release("a", 0)
		w.commit()
		a.want("0s A b owner=2 token=2", "0s N a token=0")
		a.release("a", 0)
		a.want("0s N a token=0")
	})
}

// The release lane is bounded: whoever finds it full waits, alone.
func TestAFullReleaseLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := DefaultLimits()
		l.Releases = 3
		w := newSlowWorld(t, l, nil)
		a, b, c := w.open(), w.open(), w.open()
		a.acquire(1, "a", 0, 30*time.Second)
		w.commit()
		a.take()
		for range l.Releases {
			a.release("a", 99)
		}
		var waiting atomic.Int32
		for _, session := range []*client{b, b, c} {
			waiting.Add(1)
			go func() {
				w.s.Release(session.session, "a", 98)
				waiting.Add(-1)
				session.Flush()
			}()
			synctest.Wait()
		}
		if n := waiting.Load(); n != 3 {
			t.Fatalf("%d releases wait, want 3", n)
		}

		// Acquires go on, and so does the wait for the lane's end when a session ends.
		a.acquire(2, "a", 0, 30*time.Second)
		a.want("0s T a owner=2")
		a.acquire(3, "b", 0, 30*time.Second)
		c.leave()
		if n := waiting.Load(); n != 2 {
			t.Fatalf("%d releases wait after a session has left, want 2", n)
		}

		w.commit() // one leaves the lane, one comes in
		if n := waiting.Load(); n != 1 {
			t.Fatalf("%d releases wait after one had left the lane, want 1", n)
		}
		w.commitAll()
		if n := waiting.Load(); n != 0 {
			t.Fatalf("%d releases wait after the lane was emptied", n)
		}
		a.want("0s N a token=99", "0s N a token=99", "0s N a token=99", "0s A b owner=3 token=2")
		b.want("0s N a token=98", "0s N a token=98")
		c.want()
		w.check()
	})
}
