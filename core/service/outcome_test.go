package service

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// The next entry waits for Next: answers come first, and what they bring about
// gathers.
func TestTheNextEntryWaitsUntilItMayBeSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "a", 0, lease30)
		c.take()
		out, _ := w.slow.Proposer.Propose(w.slow.take(t))
		w.s.Applied(out)
		synctest.Wait()
		c.want("0s A a owner=1 token=1")
		c.acquire(2, "a", wait60, lease30)
		if n := w.s.Gathered(); n != 0 {
			t.Errorf("%d commands have gathered, want none: the key is held", n)
		}
		c.release("a", 1)
		if n := w.s.Gathered(); n != 2 {
			t.Errorf("%d commands have gathered, want 2: a release and the grant that it brings along", n)
		}
		w.sleep(10 * time.Second) // not by the timer either
		w.wantUnderWay()
		w.s.Next()
		w.wantUnderWay("release a 1", "grant a to 2")
		if n := w.s.Gathered(); n != 0 {
			t.Errorf("%d commands have gathered when all are under way", n)
		}
		w.s.Next() // one too many
		w.commit()
		c.want("10s R a token=1", "10s A a owner=2 token=2")
		w.check()
	})
}

// An entry whose outcome is lost ends the sessions with something in it. Whoever else
// waits goes on, whatever became of the entry.
func TestAnEntryIsLost(t *testing.T) {
	for _, applied := range []bool{false, true} {
		t.Run(map[bool]string{false: "it never was applied", true: "it was applied"}[applied], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLeader(t, DefaultLimits(), nil)
				a, b, c, d := w.open(), w.open(), w.open(), w.open()
				a.acquire(1, "held", 0, 100*time.Second)
				w.commit()
				d.acquire(9, "other", 0, 100*time.Second)
				for _, c := range []*client{a, b, c, d} {
					c.take()
				}
				// With the next entry: a grant, a release of a key that nobody waits for.
				b.acquire(2, "free", wait60, 10*time.Second)
				a.release("held", 1)
				w.commit()
				d.want("0s A other owner=9 token=2")
				w.wantUnderWay("release held 1", "grant free to 2")
				c.acquire(3, "free", wait60, 10*time.Second)
				c.acquire(4, "held", wait60, 10*time.Second)
				b.release("x", 0)

				w.lose(applied)
				a.want("0s E no_leader")
				b.want("0s E no_leader")
				if applied {
					w.commitAll()
					c.want("0s A held owner=4 token=4")
					w.sleepUntil(10 * time.Second)
					w.commitAll()
					c.want("10s A free owner=3 token=5")
				} else {
					w.wantUnderWay("grant free to 3")
					w.commit()
					c.want("0s A free owner=3 token=3")
				}
				d.want()
				w.check()
			})
		})
	}
}

// What a lost entry did may show only later, but shows with the next one that is
// applied: no waiter waits for a grant that has ended.
func TestAReleaseThatWasLostAndApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 100*time.Second)
		w.commit()
		a.release("a", 1)
		b.acquire(2, "a", wait60, lease30) // behind the grant, as far as is known
		lost := w.slow.take(t)
		w.s.Lost()
		w.s.Next()
		if e := w.slow.underWay; e == nil || len(e.Commands) > 0 {
			t.Fatalf("under way is %+v, want an entry without a command", e)
		}
		w.slow.Proposer.Propose(lost)
		w.commit()
		w.wantUnderWay("grant a to 2")
		w.commit()
		b.want("0s L self", "0s A a owner=2 token=2")
		w.check()
	})
}

// An entry that was certainly not proposed: its acquires get B, and the sessions of
// its releases are ended. What the service itself releases is kept.
func TestAnEntryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		a, b, c, gone := w.open(), w.open(), w.open(), w.open()
		a.acquire(1, "held", 0, 100*time.Second)
		gone.acquire(2, "undelivered", 0, 100*time.Second)
		w.commit()
		gone.leave()
		w.commit() // the undelivered grant is released in the next entry
		for _, c := range []*client{a, b, c} {
			c.take()
		}
		w.wantUnderWay("release undelivered 2")
		c.acquire(3, "held", wait60, lease30)
		w.refuse()
		c.want()
		w.wantUnderWay("release undelivered 2")
		a.release("held", 1)
		b.acquire(4, "free", wait60, lease30)
		w.commit()
		w.wantUnderWay("release held 1", "grant free to 4", "grant held to 3")
		b.release("x", 0)
		c.acquire(5, "free", wait60, lease30)
		c.acquire(6, "held", wait60, lease30)

		w.refuse()
		a.want("0s E no_leader")
		b.want("0s B free owner=4", "0s N x token=0")
		c.want("0s B held owner=3")
		w.wantUnderWay("grant free to 5") // the other waits behind a grant that stands
		w.check()
		w.commit()
		b.release("held", 1)
		w.wantUnderWay("release held 1", "grant held to 6")
		w.commit()
		c.want("0s A free owner=5 token=3", "0s A held owner=6 token=4")
		w.check()
	})
}

// While the quiet period after a restore lasts, acquires get B and releases go on.
func TestAcquiresOfTheQuietPeriodAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		c := w.open()
		c.acquire(1, "a", wait60, lease30)
		c.acquire(2, "a", wait60, lease30)
		c.take()
		for owner := range 2 {
			w.slow.take(t)
			w.s.Applied(&lock.Outcome{Results: []lock.Result{{Status: lock.Quiet}}})
			w.s.Next()
			synctest.Wait()
			c.want([]string{"0s B a owner=1", "0s B a owner=2"}[owner])
		}
		w.wantUnderWay()
		w.check()
	})
}

// An order says what became of it: done, certainly not, or unknown.
func TestWhatBecomesOfAnOrder(t *testing.T) {
	other := errors.New("another error")
	for _, test := range []struct {
		name string
		do   func(w *world)
		want error
	}{
		{"it is applied", func(w *world) { w.commit() }, nil},
		{"its entry is lost", func(w *world) { w.lose(true) }, ErrUnknown},
		{"its entry is refused", func(w *world) { w.refuse() }, ErrNotServing},
		{"the node steps down", func(w *world) { w.step(true, func() { w.s.Follow("n2") }) }, ErrUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLeader(t, DefaultLimits(), nil)
				got := other
				w.s.Order(lock.Command{Kind: lock.KindLevel, Level: 1}, func(r lock.Result, err error) {
					w.s.Stats() // it may call the service
					if got = err; err == nil && r.Status != lock.Done {
						t.Errorf("the result is %v", r)
					}
				})
				w.wantUnderWay("order 1")
				if !errors.Is(got, other) {
					t.Fatal("it is decided before its entry is")
				}
				test.do(w)
				if !errors.Is(got, test.want) {
					t.Errorf("the error is %v, want %v", got, test.want)
				}
				w.check()
			})
		})
	}
}

func TestOrdersThatAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, DefaultLimits(), nil)
		var errs []error
		order := func() {
			w.s.Order(lock.Command{Kind: lock.KindLevel}, func(_ lock.Result, err error) { errs = append(errs, err) })
		}
		order()
		w.s.Elected()
		order()
		w.s.Lead("self")
		order() // under way
		for range maxOrders {
			order()
		}
		if len(errs) != 2 || errs[0] != ErrNotServing || errs[1] != ErrNotServing {
			t.Fatalf("the errors are %v, want two of a node that does not serve", errs)
		}
		order()
		if errs[2] != ErrTooManyOrders {
			t.Fatalf("the error is %v, want %v", errs[2], ErrTooManyOrders)
		}
		w.step(false, func() { w.s.Follow("") })
		if len(errs) != 3+1+maxOrders || errs[3] != ErrUnknown || errs[4] != ErrNotServing {
			t.Fatalf("%d errors, of which %v, want all orders to be answered", len(errs), errs[3:5])
		}
		w.check()
	})
}

// Held probes count as answers that wait, until they are answered or dropped.
func TestHeldProbesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		c := w.open()
		hold := func() {
			c.acquire(1, "a", wait60, lease30)
			c.release("a", 0)
			c.release("b", 0)
			if n := c.session.HeldProbes(); n != 2 {
				t.Fatalf("%d probes are held, want 2", n)
			}
		}
		hold()
		w.commit()
		c.want("0s L self", "0s A a owner=1 token=1", "0s N a token=0", "0s N b token=0")
		if n := c.session.HeldProbes(); n != 0 {
			t.Fatalf("%d probes are held, want none", n)
		}
		c.release("a", 1)
		w.commit()
		hold()
		w.step(false, func() { w.s.Follow("") })
		c.want("0s R a token=1", "0s E no_leader")
		if n := c.session.HeldProbes(); n != 0 {
			t.Fatalf("%d probes are held, want none", n)
		}
	})
}
