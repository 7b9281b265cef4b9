package service

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
)

func TestDrainAnswersWhatIsNotProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 60*time.Second, 30*time.Second) // under way
		for i := range 2 * maxRound {
			b.acquire(100+uint64(i), "a", 60*time.Second, 30*time.Second)
		}
		b.acquire(2, "b", 60*time.Second, 30*time.Second) // would go into the next entry
		b.acquire(3, "c", 0, 30*time.Second)              // so would this one

		w.s.Drain()
		answers := b.take()
		if len(answers) != 2*maxRound+2 {
			t.Fatalf("%d answers, want one for each acquire", len(answers))
		}
		for _, a := range answers {
			if a.Outcome != Busy {
				t.Fatalf("told %v, want B", a)
			}
		}
		a.want()
		a.acquire(4, "a", 0, 30*time.Second) // one that is read during the drain
		a.want("0s B a owner=4")

		w.commit()
		a.want("0s A a owner=1 token=1")
		w.wantUnderWay()
		a.release("a", 1) // releases go on
		w.commit()
		a.want("0s R a token=1")
		a.release("a", 0)
		a.want("0s N a token=0")
		w.check()
	})
}

func TestDrainAnswersAWaiterWhoseGrantIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, DefaultLimits(), nil)
		a := w.open()
		a.acquire(1, "a", 60*time.Second, 30*time.Second)
		w.s.Drain()
		w.slow.elsewhere("a", 10*time.Second)
		w.commit()
		a.want("0s B a owner=1")
		w.check()
	})
}

// Tokens never wrap. Whoever asks for a key then is sent away, and releases go on.
func TestExhaustedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := startWorld(t, local.New(math.MaxUint64), nil, DefaultLimits(), &rec)
		a, b, c := w.open(), w.open(), w.open()
		a.acquire(1, "a", 0, 30*time.Second)
		a.want("0s A a owner=1 token=18446744073709551615")
		b.acquire(2, "a", 60*time.Second, 30*time.Second)
		c.acquire(3, "a", 60*time.Second, 30*time.Second)
		b.acquire(4, "b", 0, 30*time.Second)
		if a.ended || !b.ended || c.ended {
			t.Fatal("only the session that asked for another key was to be ended")
		}

		a.release("a", math.MaxUint64)
		synctest.Wait()
		a.want("0s R a token=18446744073709551615")
		b.want("0s E not_active")
		c.want("0s E not_active")
		for owner := uint64(2); owner <= 4; owner++ {
			if got := rec.acquires[owner].Result; got != AcquireExhausted {
				t.Errorf("owner %d was reported as %v", owner, got)
			}
		}
		w.check()
	})
}

// A session that has left is not ended a second time.
func TestTokensThatRunOutAfterASessionHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slow{Proposer: local.New(math.MaxUint64)}
		w := startWorld(t, p, p, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 30*time.Second)
		w.commit()
		b.acquire(2, "b", 0, 30*time.Second)
		b.leave()
		w.commit()
		if b.ended {
			t.Error("it was")
		}
		w.check()
	})
}
