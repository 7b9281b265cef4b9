package service

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

const nano = time.Nanosecond

func TestALeaseEndsAtItsTimeAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newWorld(t, DefaultLimits(), &rec)
		a, b := w.open(), w.open()
		w.sleepUntil(3 * time.Second)
		a.acquire(1, "a", 0, 10*time.Second)
		b.acquire(2, "a", 60*time.Second, 20*time.Second)
		a.want("3s A a owner=1 token=1")

		w.sleepUntil(13*time.Second - nano)
		b.want()
		b.acquire(3, "a", 0, 10*time.Second)
		b.want("12.999999999s T a owner=3")
		w.sleepUntil(13 * time.Second)
		b.want("13s A a owner=2 token=2")

		// The lease of a waiter begins at its grant.
		w.sleepUntil(33*time.Second - nano)
		a.acquire(4, "a", 0, 10*time.Second)
		a.want("32.999999999s T a owner=4")
		w.sleepUntil(33 * time.Second)
		a.acquire(5, "a", 0, 10*time.Second)
		a.want("33s A a owner=5 token=3")
		a.release("a", 2)
		a.want("33s N a token=2")
	})
}

// A lease that nobody waits for is reported when it ends, and not when somebody
// asks for the key.
func TestALeaseThatNobodyWaitsForEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newWorld(t, DefaultLimits(), &rec)
		a := w.open()
		a.acquire(1, "a", 0, 10*time.Second)
		w.sleepUntil(10*time.Second - nano)
		if st := w.s.Stats(); st.Held != 1 || len(rec.ended) > 0 {
			t.Errorf("%d are held, %v have ended before the time", st.Held, rec.ended)
		}
		w.sleepUntil(10 * time.Second)
		if st := w.s.Stats(); st.Held != 0 || len(rec.ended) != 1 {
			t.Errorf("%d are held, %v have ended", st.Held, rec.ended)
		}
	})
}

func TestAWaitEndsAtItsTimeAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 250*time.Second)
		a.take()
		w.sleepUntil(2 * time.Second)
		b.acquire(2, "a", 255*time.Second, time.Second)
		b.acquire(3, "a", 5*time.Second, time.Second)
		b.acquire(4, "a", time.Second, time.Second)

		w.sleepUntil(3*time.Second - nano)
		b.want()
		w.sleepUntil(3 * time.Second)
		b.want("3s T a owner=4")
		w.sleepUntil(7*time.Second - nano)
		b.want()
		w.sleepUntil(7 * time.Second)
		b.want("7s T a owner=3")
		w.sleepUntil(250 * time.Second)
		b.want("4m10s A a owner=2 token=2")
	})
}

// A waiter whose wait and whose predecessor's lease end in the same instant is
// granted, however many there are; only the first in line, of course.
func TestLeasesAndWaitsThatEndTogetherMeanGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 4*maxRound + 10
		w := newWorld(t, DefaultLimits(), nil)
		a, b, c := w.open(), w.open(), w.open()
		for i := range keys {
			a.acquire(uint64(i), fmt.Sprint(i), 0, 10*time.Second)
			b.acquire(uint64(i), fmt.Sprint(i), 10*time.Second, 10*time.Second)
			c.acquire(uint64(i), fmt.Sprint(i), 10*time.Second, 10*time.Second)
		}
		w.sleepUntil(10 * time.Second)
		w.check()
		for _, want := range []struct {
			c       *client
			outcome Outcome
		}{{b, Granted}, {c, TimedOut}} {
			for _, got := range oneAnswerEach(t, want.c, keys) {
				if got.Outcome != want.outcome || got.at != 10*time.Second {
					t.Fatalf("told %v", got)
				}
			}
		}
	})
}

// 1,500 waiters of one session are decided by one event: each gets its answer.
func TestManyWaitersOfOneSessionAreDecidedAtOnce(t *testing.T) {
	const waiters = 1500
	for name, event := range map[string]func(*world){
		"their wait ends": func(w *world) { w.sleepUntil(5 * time.Second) },
		"drain":           func(w *world) { w.s.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, DefaultLimits(), nil)
				a, b := w.open(), w.open()
				a.acquire(1, "a", 0, 30*time.Second)
				for i := range waiters {
					b.acquire(uint64(i), "a", 5*time.Second, 30*time.Second)
				}
				event(w)
				oneAnswerEach(t, b, waiters)
				w.check()
			})
		})
	}
}

// oneAnswerEach returns what the session was told, which must be one answer for
// each owner below n.
func oneAnswerEach(t *testing.T, c *client, n int) []told {
	t.Helper()
	answers := c.take()
	seen := make(map[uint64]bool)
	for _, a := range answers {
		seen[a.Owner] = true
	}
	if len(answers) != n || len(seen) != n {
		t.Fatalf("%d answers to %d owners, want %d", len(answers), len(seen), n)
	}
	return answers
}

// There is one timer for all: something that is due earlier than what it waits for
// arms it anew, something later does not delay it.
func TestTheTimerIsArmedForWhatIsDueFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 250*time.Second)
		a.acquire(2, "b", 0, 3*time.Second)
		a.take()
		b.acquire(3, "b", 60*time.Second, 60*time.Second)
		b.acquire(4, "a", 2*time.Second, 60*time.Second)
		b.acquire(5, "a", time.Second, 60*time.Second)
		b.acquire(6, "a", 200*time.Second, 60*time.Second)
		w.sleepUntil(10 * time.Second)
		b.want("1s T a owner=5", "2s T a owner=4", "3s A b owner=3 token=3")

		// The first due may go away; what comes behind it is not forgotten.
		b.acquire(7, "a", time.Second, 60*time.Second)
		b.acquire(8, "a", 2*time.Second, 60*time.Second)
		a.acquire(9, "c", 0, time.Second)
		a.release("c", 4)
		w.sleepUntil(20 * time.Second)
		b.want("11s T a owner=7", "12s T a owner=8")
	})
}

// An idle service sleeps.
func TestATimerThatHasNothingToWaitForWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, DefaultLimits(), nil)
		if d := w.s.tick(); d != never {
			t.Errorf("looks again in %v", d)
		}
		w.sleep(1000 * time.Hour)
		c := w.open()
		c.acquire(1, "a", 0, time.Second)
		w.sleep(time.Second)
		c.acquire(2, "a", 0, time.Second)
		if got := c.take(); len(got) != 2 || got[1].Outcome != Granted {
			t.Errorf("told %v", got)
		}
	})
}
