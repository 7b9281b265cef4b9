package service

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The tests here have a proposer that takes its time, as a cluster's does. They
// look at the entry that is under way, and at who is told what when it commits.

func TestALeaseThatEndsBringsTheNextWaiterAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 10*time.Second)
		w.commitAll()
		b.acquire(2, "a", 60*time.Second, 10*time.Second)
		a.want("0s A a owner=1 token=1")

		w.sleepUntil(10 * time.Second)
		w.wantUnderWay("grant a to 2")
		w.commit()
		b.want("10s A a owner=2 token=2")
	})
}

func TestALeaseAndAWaitThatEndTogetherMeanAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 10*time.Second)
		w.commitAll()
		b.acquire(2, "a", 10*time.Second, 10*time.Second)

		w.sleepUntil(10 * time.Second)
		w.commit()
		b.want("10s A a owner=2 token=2")
	})
}

// What does not fit into one entry goes into the next ones, oldest deadline first.
func TestThousandsOfLeasesThatEndTogetherBringTheirWaitersAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 2*maxRound + 10
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		for i := range keys {
			a.acquire(uint64(i), fmt.Sprint(i), 10*time.Second, 10*time.Second)
		}
		w.commitAll()
		for i := range keys {
			b.acquire(uint64(i), fmt.Sprint(i), 60*time.Second, 10*time.Second)
		}

		w.sleepUntil(10 * time.Second)
		for _, want := range []int{maxRound, maxRound, keys - 2*maxRound} {
			if got := len(w.underWay()); got != want {
				t.Fatalf("%d grants in the entry, want %d", got, want)
			}
			w.commit()
		}
		for i, got := range b.take() {
			if got.Outcome != Granted || got.Owner != uint64(i) {
				t.Fatalf("the answer in place %d is %v", i, got)
			}
		}
	})
}

// An acquire that left before its entry was sealed leaves nothing behind that
// grows while an entry is under way.
func TestAcquiresThatLeaveWhileAnEntryIsUnderWayLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		w.open().acquire(1, "first", 0, 10*time.Second)
		for i := range 100 {
			c := w.open()
			c.acquire(2, fmt.Sprint(i), 60*time.Second, 10*time.Second)
			c.leave()
		}
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		if n := w.s.ready.len; n > 0 {
			t.Errorf("%d keys are ready for the next entry, and nobody waits for them", n)
		}
	})
}

func TestPositionCountsWhoeverIsInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newSlowWorld(t, DefaultLimits(), &rec)
		c := w.open()
		c.acquire(1, "first", 0, 10*time.Second)
		for owner := range uint64(3) { // the first of these goes into the next entry
			c.acquire(10+owner, "a", time.Second, 10*time.Second)
		}
		c.leave()

		d := w.open()
		d.acquire(20, "first", time.Second, 10*time.Second) // behind one that is under way
		d.acquire(21, "first", time.Second, 10*time.Second)
		d.leave()
		for owner, want := range map[uint64]int{10: 0, 11: 1, 12: 2, 20: 1, 21: 2} {
			if got := rec.acquires[owner].Position; got != want {
				t.Errorf("owner %d came as number %d, want %d", owner, got, want)
			}
		}
	})
}

func TestAHandOverIsOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 30*time.Second)
		w.commit()
		b.acquire(2, "a", 60*time.Second, 30*time.Second)
		b.acquire(3, "a", 60*time.Second, 30*time.Second)
		a.take()

		a.release("a", 1)
		w.wantUnderWay("release a 1", "grant a to 2")
		a.want()
		w.commit()
		a.want("0s R a token=1")
		b.want("0s A a owner=2 token=2")
		w.wantUnderWay()
	})
}

// Had the stale release brought a waiter along too, two grants of the key would
// have been under way, the second behind the release of the first waiter's.
func TestAStaleReleaseBesideATrueOneGrantsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 30*time.Second)
		w.commit()
		for owner := range uint64(3) {
			b.acquire(10+owner, "a", 60*time.Second, 30*time.Second)
		}
		a.acquire(2, "other", 0, 30*time.Second) // under way while the releases gather
		a.release("a", 99)
		a.release("a", 1)
		a.release("a", 1)
		a.release("a", 98)
		a.take()

		w.commit()
		w.wantUnderWay("release a 99", "release a 1", "release a 1", "release a 98", "grant a to 10")
		w.commit()
		a.want("0s A other owner=2 token=2",
			"0s N a token=99", "0s R a token=1", "0s N a token=1", "0s N a token=98")
		b.want("0s A a owner=10 token=3")
		w.wantUnderWay()

		a.release("a", 1) // stale by now: it brings nobody along
		w.wantUnderWay("release a 1")
		w.commit()
		b.want()
	})
}

func TestAWaiterWhoseGrantIsRefusedGoesBackToTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "a", 60*time.Second, 30*time.Second)
		c.acquire(2, "a", 60*time.Second, 30*time.Second)
		w.wantUnderWay("grant a to 1")
		token := w.slow.elsewhere("a", 10*time.Second)
		w.commit()
		c.want()
		w.check()

		w.sleepUntil(4 * time.Second)
		c.release("a", token)
		w.wantUnderWay("release a 1", "grant a to 1")
		w.commit()
		c.want("4s R a token=1", "4s A a owner=1 token=2")
	})
}

func TestAWaiterWhoseGrantIsRefusedWaitsForTheEndOfTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "a", 60*time.Second, 30*time.Second)
		w.slow.elsewhere("a", 10*time.Second)
		w.commit()

		w.sleepUntil(10 * time.Second)
		w.wantUnderWay("grant a to 1")
		w.commit()
		c.want("10s A a owner=1 token=2")
	})
}

func TestAnAcquireWhoseGrantIsRefusedAndThatCannotWaitTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "immediate", 0, 30*time.Second)
		w.commit()
		c.take()
		c.release("immediate", 1)
		w.commit()
		c.take()

		c.acquire(2, "immediate", 0, 30*time.Second)
		w.slow.elsewhere("immediate", 10*time.Second)
		w.commit()
		c.want("0s T immediate owner=2")

		c.acquire(3, "over", 5*time.Second, 30*time.Second)
		w.slow.elsewhere("over", 10*time.Second)
		w.sleepUntil(6 * time.Second)
		c.want()
		w.commit()
		c.want("6s T over owner=3")
		w.check()
	})
}

// Once a grant is under way, its waiter can't time out any more.
func TestAWaitThatEndsWhileItsGrantIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "a", 5*time.Second, 30*time.Second)
		c.acquire(2, "a", 5*time.Second, 30*time.Second)
		w.sleepUntil(8 * time.Second)
		c.want("5s T a owner=2") // this one was not
		w.commit()
		c.want("8s A a owner=1 token=1")
	})
}

// One that is to go into the next entry is not under way.
func TestAWaitThatEndsBeforeItsGrantIsSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "other", 0, 30*time.Second)
		c.acquire(2, "a", 5*time.Second, 30*time.Second)
		w.sleepUntil(8 * time.Second)
		c.want("5s T a owner=2")
		w.commit()
		w.wantUnderWay()
	})
}

// A grant that nobody is left to take is released at once, by its exact token, and
// brings the next waiter along.
func TestASessionThatLeavesWhileItsGrantIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newSlowWorld(t, DefaultLimits(), &rec)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 60*time.Second, 30*time.Second)
		a.acquire(2, "a", 60*time.Second, 30*time.Second)
		b.acquire(3, "a", 60*time.Second, 30*time.Second)
		a.leave()

		w.commit()
		w.wantUnderWay("release a 1", "grant a to 3")
		w.commit()
		a.want()
		b.want("0s A a owner=3 token=2")
		if got := rec.acquires[1]; got.Result != AcquireGone || got.Token != 1 {
			t.Errorf("the grant that reached nobody was reported as %+v", got)
		}
	})
}

// So is one that was answered, and whose connection closed before it was written.
func TestAnUndeliveredGrantIsReleasedByItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := DefaultLimits()
		l.Releases = 1
		w := newSlowWorld(t, l, nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 30*time.Second)
		w.commit()
		b.acquire(2, "a", 60*time.Second, 30*time.Second)
		b.release("a", 99) // fills the lane
		a.leave()

		w.s.Abandon("a", 1) // needs no room in it
		w.commit()
		w.wantUnderWay("release a 1", "grant a to 2")
		w.commit()
		b.want("0s N a token=99", "0s A a owner=2 token=2")
	})
}
