package service

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAcquireAfterLeaveTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newWorld(t, DefaultLimits(), &rec)
		holder, gone := w.open(), w.open()
		holder.acquire(1, "held", 0, 10*time.Second)
		gone.leave()

		gone.acquire(2, "held", 5*time.Second, 10*time.Second)
		gone.acquire(3, "free", 5*time.Second, 10*time.Second)
		if st := w.s.Stats(); st.Waiters != 0 || st.Held != 1 {
			t.Errorf("%d waiters and %d held keys, want 0 and 1", st.Waiters, st.Held)
		}
		gone.want()
		for _, owner := range []uint64{2, 3} {
			if got := rec.acquires[owner].Result; got != AcquireGone {
				t.Errorf("the acquire of owner %d was reported as %v", owner, got)
			}
		}
	})
}

// Answers to a session's own calls are flushed by its connection after the last
// of them. A call that waits for the release lane must not hold them back.
func TestAReleaseThatWaitsForTheLaneFlushesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := DefaultLimits()
		l.Releases = 1
		w := newSlowWorld(t, l, nil)
		a, b := w.open(), w.open()
		a.acquire(1, "held", 0, 10*time.Second)
		w.commitAll()
		a.release("held", 1) // fills the lane

		go func() { // b's connection has read an acquire and a release at once
			w.s.Acquire(b.session, Acquire{Key: "held", Owner: 2, Lease: time.Second})
			w.s.Release(b.session, "held", 99)
			b.Flush()
		}()
		synctest.Wait()
		b.want("0s T held owner=2")

		w.commitAll()
		b.want("0s N held token=99")
	})
}

// flushes counts how often the service flushes a session.
type flushes struct{ n int }

func (f *flushes) Deliver(Answer)        {}
func (f *flushes) Flush()                { f.n++ }
func (f *flushes) Leader(string)         {}
func (f *flushes) End(EndReason, string) {}

// What a session's own call decides, its connection flushes, so that one write
// takes the answers to many calls. Others flush it once for all they caused.
func TestWhoFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, DefaultLimits(), nil)
		var own, others flushes
		a, b := w.s.Open(&own, ""), w.s.Open(&others, "")
		for i := range uint64(3) {
			w.s.Acquire(a, Acquire{Key: "a", Owner: i, Lease: time.Minute})
		}
		for i := range uint64(3) {
			w.s.Acquire(b, Acquire{Key: "a", Owner: i, Wait: 5 * time.Second, Lease: time.Minute})
		}
		w.s.Release(a, "a", 1)
		if own.n != 0 || others.n != 1 {
			t.Errorf("flushed the caller %d times, the one it gave way to %d times; want 0 and 1", own.n, others.n)
		}
		w.sleepUntil(5 * time.Second) // two waits end
		if others.n != 2 {
			t.Errorf("two answers of one event were flushed %d times", others.n-1)
		}
	})
}
