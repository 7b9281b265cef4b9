package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

const (
	wait60  = 60 * time.Second
	lease30 = 30 * time.Second
)

// start asks from a goroutine of its own, since the call may wait. What it returns
// says whether that is over.
func (c *client) start(ask func(*Session)) (over func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(c.session)
		c.Flush()
	}()
	synctest.Wait()
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

func acquiring(owner uint64, key string) func(*client) func() bool {
	return func(c *client) func() bool {
		return c.start(func(session *Session) {
			c.w.s.Acquire(session, Acquire{Key: key, Owner: owner, Wait: wait60, Lease: lease30})
		})
	}
}

func releasing(key string, token uint64) func(*client) func() bool {
	return func(c *client) func() bool {
		return c.start(func(session *Session) { c.w.s.Release(session, key, token) })
	}
}

// What a request gets where the node does not serve (docs/PROTOCOL.md, section 3).
func TestRequestsOfANodeThatDoesNotServe(t *testing.T) {
	for _, test := range []struct {
		name string
		to   func(w *world)
		// what sessions are told, and how requests end
		idle, acquire, release, probe []string
	}{
		{name: "it knows no leader", to: func(w *world) {},
			acquire: []string{"0s E no_leader"}, release: []string{"0s E no_leader"}, probe: []string{"0s E no_leader"}},
		{name: "another leads", to: func(w *world) { w.s.Follow("n2") },
			idle: []string{"0s L n2"}, acquire: []string{"0s L n2", "0s M n2"}, release: []string{"0s L n2", "0s M n2"}, probe: []string{"0s L n2", "0s M n2"}},
		{name: "another led", to: func(w *world) { w.s.Follow("n2"); w.s.Follow("") },
			idle: []string{"0s L n2"}, acquire: []string{"0s L n2", "0s E no_leader"}, release: []string{"0s L n2", "0s E no_leader"}, probe: []string{"0s L n2", "0s E no_leader"}},
		{name: "it drains and another leads", to: func(w *world) { w.s.Follow("n2"); w.s.Drain() },
			idle: []string{"0s L n2"}, acquire: []string{"0s L n2", "0s B a owner=1"}, release: []string{"0s L n2", "0s M n2"}, probe: []string{"0s L n2", "0s M n2"}},
		{name: "it drains and knows no leader", to: func(w *world) { w.s.Drain() },
			acquire: []string{"0s B a owner=1"}, release: []string{"0s E not_active"}, probe: []string{"0s E not_active"}},
		{name: "it has retired", to: func(w *world) { w.s.Lead("self"); w.s.Retire() },
			idle: []string{"0s L self"}, acquire: []string{"0s L self", "0s B a owner=1"}, release: []string{"0s L self", "0s E not_active"}, probe: []string{"0s L self", "0s E not_active"}},
		{name: "it has retired and another leads", to: func(w *world) { w.s.Retire(); w.s.Follow("n2"); w.s.Lead("self"); w.s.Elected() },
			idle: []string{"0s L n2"}, acquire: []string{"0s L n2", "0s B a owner=1"}, release: []string{"0s L n2", "0s M n2"}, probe: []string{"0s L n2", "0s M n2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, DefaultLimits(), nil)
				idle, a, b, c := w.open(), w.open(), w.open(), w.open()
				test.to(w)
				a.acquire(1, "a", wait60, lease30)
				b.release("a", 1)
				c.release("a", 0)
				idle.want(test.idle...)
				a.want(test.acquire...)
				b.want(test.release...)
				c.want(test.probe...)
				w.wantUnderWay()
				w.check()
			})
		})
	}
}

// A session is told of the leader when it opens, if one is known that serves, and
// again at each change, once.
func TestWhatSessionsAreToldOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, DefaultLimits(), nil)
		early := w.open()
		early.want()
		w.s.Follow("n2")
		w.s.Follow("n2")
		late := w.open()
		late.want("0s L n2")
		w.s.Follow("n3")
		w.s.Follow("")
		unknown := w.open()
		unknown.want()
		w.s.Follow("n3")
		w.s.Elected()
		between := w.open()
		between.want()
		w.s.Lead("self")
		w.s.Lead("self")
		w.s.Lead("renamed")
		w.open().want("0s L renamed")
		early.want("0s L n2", "0s L n3", "0s L n3", "0s L self", "0s L renamed")
		late.want("0s L n3", "0s L n3", "0s L self", "0s L renamed")
		unknown.want("0s L n3", "0s L self", "0s L renamed")
		between.want("0s L self", "0s L renamed")
		w.check()
	})
}

// A single server's ready frame has no address.
func TestASingleServerIsReadyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, DefaultLimits(), nil)
		var ready readies
		w.s.Open(&ready, "")
		if len(ready) != 1 || ready[0] != "" {
			t.Errorf("told %q, want one empty address", ready)
		}
	})
}

type readies []string

func (r *readies) Leader(addr string)  { *r = append(*r, addr) }
func (*readies) Deliver(Answer)        {}
func (*readies) Flush()                {}
func (*readies) End(EndReason, string) {}

// stepDown is a leader with something of every kind, which stops serving.
func stepDown(t *testing.T, to func(w *world), end string, news ...string) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newLeader(t, DefaultLimits(), &rec)
		holder, proposed, released, gathered, parked, idle := w.open(), w.open(), w.open(), w.open(), w.open(), w.open()
		holder.acquire(1, "held", 0, 100*time.Second)
		w.commit()
		for _, c := range []*client{holder, proposed, released, gathered, parked, idle} {
			c.take()
		}
		gathered.acquire(2, "first", 0, lease30) // under way
		released.release("held", 98)             // not in that entry
		w.commit()                               // its grant and then the stale release
		gathered.want("0s A first owner=2 token=2")
		w.wantUnderWay("release held 98")
		proposed.acquire(3, "a", wait60, lease30)
		w.commit()
		released.want("0s N held token=98")
		w.wantUnderWay("grant a to 3")
		proposed.release("x", 0) // a held probe
		proposed.acquire(4, "a", wait60, lease30)
		proposed.acquire(5, "held", wait60, lease30)
		parked.acquire(6, "a", wait60, lease30)
		parked.acquire(7, "b", 0, lease30) // would go into the next entry
		parked.acquire(8, "held", wait60, lease30)
		released.acquire(9, "held", wait60, lease30)
		released.release("held", 97) // in no entry yet
		w.check()

		w.step(false, func() { to(w) })
		answers := proposed.words()
		if !slices.Equal(answers[:2], []string{"0s B a owner=4", "0s B held owner=5"}) && !slices.Equal(answers[:2], []string{"0s B held owner=5", "0s B a owner=4"}) {
			t.Errorf("told %q, want its acquires that were not proposed to be refused first", answers)
		}
		if !slices.Equal(answers[2:], []string{"0s " + end}) {
			t.Errorf("told %q, want the end after that", answers)
		}
		released.want("0s B held owner=9", "0s "+end)
		parked.wantSorted(append([]string{"0s B a owner=6", "0s B b owner=7", "0s B held owner=8"}, news...)...)
		holder.want(news...)
		idle.want(news...)
		w.wantUnderWay()
		w.check()
		if got := rec.acquires[3].Result; got != AcquireUnknown {
			t.Errorf("the acquire under way was reported as %v", got)
		}
	})
}

func TestALeaderStepsDown(t *testing.T) {
	for _, test := range []struct {
		name string
		to   func(w *world)
		end  string
		news []string
	}{
		{"another leads", func(w *world) { w.s.Follow("n2") }, "M n2", []string{"0s L n2"}},
		{"no leader is known", func(w *world) { w.s.Follow("") }, "E no_leader", nil},
		{"the leader is known later", func(w *world) { w.s.Follow(""); w.s.Follow("n2") }, "E no_leader", []string{"0s L n2"}},
		{"it is elected again and does not serve yet", func(w *world) { w.s.Elected() }, "E no_leader", nil},
		{"it leads again at once", func(w *world) { w.s.Elected(); w.s.Lead("self") }, "E no_leader", []string{"0s L self"}},
		{"it retires", func(w *world) { w.s.Retire() }, "E not_active", nil},
		{"it drains, and another leads", func(w *world) { w.s.Drain(); w.s.Follow("n2") }, "M n2", []string{"0s L n2"}},
		{"it drains, and no leader is known", func(w *world) { w.s.Drain(); w.s.Follow("") }, "E not_active", nil},
	} {
		t.Run(test.name, func(t *testing.T) { stepDown(t, test.to, test.end, test.news...) })
	}
}

// words returns what the session was told.
func (c *client) words() (list []string) {
	for _, a := range c.take() {
		list = append(list, a.String())
	}
	return list
}

// wantSorted is want, in whatever order.
func (c *client) wantSorted(want ...string) {
	c.w.t.Helper()
	c.wantPerhaps("", want...)
}

// wantPerhaps is wantSorted, and the session may have been told perhaps besides.
func (c *client) wantPerhaps(perhaps string, want ...string) {
	c.w.t.Helper()
	got := slices.DeleteFunc(c.words(), func(word string) bool { return word == perhaps })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.w.t.Fatalf("session was told %q, want %q", got, want)
	}
}

// Many waiters of one connection that are refused at once are no reason to end it.
func TestASessionWithThousandsOfWaitersLivesOnWhenTheLeaderStepsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 1500
		w := newLeader(t, DefaultLimits(), nil)
		holder, c := w.open(), w.open()
		holder.acquire(1, "a", 0, 100*time.Second)
		w.commit()
		c.take()
		for i := range uint64(waiters) {
			c.acquire(100+i, "a", wait60, lease30)
		}
		w.s.Follow("n2")
		words := c.words()
		if len(words) != waiters+1 || words[waiters] != "0s L n2" {
			t.Fatalf("%d words, want one for each waiter, then the leader's address", len(words))
		}
		refused := make(map[string]bool)
		for _, word := range words[:waiters] {
			refused[word] = strings.HasPrefix(word, "0s B a owner=")
		}
		if len(refused) != waiters {
			t.Fatalf("%d waiters were refused, want %d", len(refused), waiters)
		}
		w.s.Lead("self")
		c.acquire(1, "b", 0, lease30)
		w.commit()
		c.want("0s L self", "0s A b owner=1 token=2")
		w.check()
	})
}

// A node that is elected does not serve yet: requests wait until it does, up to 5 s.
func TestRequestsWaitForAnElectedNode(t *testing.T) {
	for _, test := range []struct {
		name    string
		then    func(w *world)
		acquire []string
		release []string
		perhaps string // a word that a session may be told besides
	}{
		{"it serves", func(w *world) { w.s.Lead("self"); synctest.Wait(); w.commitAll() },
			[]string{"4s L self", "4s A a owner=1 token=1"}, []string{"4s L self", "4s N x token=9"}, ""},
		// The request that wakes up may end its session before the session was told by L.
		{"another leads after all", func(w *world) { w.s.Follow("n2") },
			[]string{"4s M n2"}, []string{"4s M n2"}, "4s L n2"},
		{"it does not lead after all", func(w *world) { w.s.Follow("") },
			[]string{"4s E no_leader"}, []string{"4s E no_leader"}, ""},
		{"it is told again and takes too long", func(w *world) { w.s.Elected(); w.sleep(time.Second) },
			[]string{"5s E not_active"}, []string{"5s E not_active"}, ""},
		{"it drains, then serves", func(w *world) { w.s.Drain(); w.s.Lead("self"); synctest.Wait(); w.commitAll() },
			[]string{"4s B a owner=1", "4s L self"}, []string{"4s L self", "4s N x token=9"}, ""},
		{"it retires", func(w *world) { w.s.Retire() },
			[]string{"4s B a owner=1"}, []string{"4s E not_active"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, DefaultLimits(), nil)
				a, b, gone := w.open(), w.open(), w.open()
				w.s.Elected()
				over := []func() bool{acquiring(1, "a")(a), releasing("x", 9)(b), acquiring(2, "a")(gone)}
				w.sleepUntil(4 * time.Second)
				a.want()
				gone.leave()
				if over[0]() || over[1]() || !over[2]() {
					t.Fatal("requests were to wait, and the one whose session left to end")
				}
				test.then(w)
				synctest.Wait()
				for _, over := range over {
					if !over() {
						t.Fatal("a request still waits")
					}
				}
				a.wantPerhaps(test.perhaps, test.acquire...)
				b.wantPerhaps(test.perhaps, test.release...)
				gone.want()
				w.check()
			})
		})
	}
}

// Later than that they don't wait at all, and nodes that serve at last serve.
func TestAnElectedNodeThatServesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		w.s.Elected()
		w.sleepUntil(7 * time.Second)
		w.s.Elected()
		a.acquire(1, "a", wait60, lease30)
		a.want("7s E not_active")
		w.s.Lead("self")
		b.acquire(2, "a", wait60, lease30)
		w.commit()
		b.want("7s L self", "7s A a owner=2 token=1")
		w.check()
	})
}

// Whoever waits for the release lane is told when the node stops serving.
func TestReleasesThatWaitForTheLaneWhenTheLeaderStepsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := DefaultLimits()
		l.Releases = 1
		w := newLeader(t, l, nil)
		a, b, c := w.open(), w.open(), w.open()
		a.release("x", 1) // under way, and fills the lane
		overB, overC := releasing("x", 2)(b), releasing("x", 3)(c)
		if overB() || overC() {
			t.Fatal("the lane is not full")
		}
		w.step(true, func() { w.s.Follow("n2") })
		if !overB() || !overC() {
			t.Fatal("they still wait")
		}
		for _, c := range []*client{a, b, c} {
			words := c.words() // whether it hears of the leader first, is chance
			if last := words[len(words)-1]; words[0] != "0s L self" || last != "0s M n2" {
				t.Errorf("told %q, want M last", words)
			}
		}
		w.check()
	})
}

// A leadership that is regained at once begins anew: nothing of the one before counts,
// and what its entry's outcome was, if that is told late, does nothing.
func TestLeadershipThatIsRegained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fill(Limits{Acquires: 10, Releases: 2, Waiters: 10})
		w := newLeader(t, l, nil)
		old := w.open()
		for range 3 {
			for i := range uint64(8) {
				old.acquire(i, fmt.Sprint(i), wait60, lease30)
			}
			old.release("x", 1)
			old.release("x", 2)
			old.release("x", 0)
			w.step(false, func() { w.s.Elected(); w.s.Lead("self") })
			w.check()
			w.s.Applied(&lock.Outcome{Results: make([]lock.Result, 100)})
			w.s.Lost()
			w.s.Refused()
			if n := w.s.Gathered(); n != 0 {
				t.Fatalf("%d commands wait for the next entry", n)
			}
			for i, g := range w.s.Stats().Gates {
				if g.Closed || g.Use != 0 {
					t.Fatalf("gate %v: %+v", Gate(i), g)
				}
			}
			w.wantUnderWay()
			old.leave()
			old = w.open()
		}
		old.take()
		old.acquire(1, "a", 0, lease30)
		w.s.Next() // of an entry before
		old.acquire(2, "b", 0, lease30)
		w.wantUnderWay("grant a to 1")
		w.commit()
		w.commit()
		old.want("0s A a owner=1 token=1", "0s A b owner=2 token=2")
		w.check()
	})
}

// A grant that is under way when its session leaves is released while the node leads,
// and not afterwards: its outcome is not known then.
func TestAnUndeliveredGrantOfALeaderThatStepsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		a := w.open()
		a.acquire(1, "a", 0, 10*time.Second)
		a.leave()
		w.step(true, func() { w.s.Follow("n2") })
		w.s.Abandon("a", 1)
		w.s.Lead("self")
		w.wantUnderWay()
		b := w.open()
		b.acquire(2, "a", wait60, lease30)
		w.sleepUntil(10 * time.Second)
		w.commitAll()
		b.want("0s L self", "10s A a owner=2 token=2")
		w.check()
	})
}

// The time of a cluster is told once a second while a lease lives.
func TestTimeIsToldEverySecondWhileALeaseLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		var at []string
		w.slow.proposed = func(e *lock.Entry) { at = append(at, fmt.Sprintf("%v %d", e.Elapsed, len(e.Commands))) }
		c := w.open()
		pass := func(until time.Duration) {
			for w.s.now() < until {
				w.commitAll()
				w.sleep(100 * time.Millisecond)
			}
			w.commitAll()
		}
		pass(3 * time.Second)
		c.acquire(1, "a", 0, 3500*time.Millisecond)
		pass(4200 * time.Millisecond)
		c.acquire(2, "b", 0, time.Second)
		pass(10 * time.Second)
		want := []string{"3s 1", "4s 0", "4.2s 1", "5.2s 0", "6.2s 0", "6.5s 0"}
		if !slices.Equal(at, want) {
			t.Errorf("entries were sealed at %q, want %q", at, want)
		}

		c.acquire(3, "a", 0, lease30)
		w.commit()
		w.step(true, func() { w.s.Follow("n2") })
		w.sleep(10 * time.Second)
		w.wantUnderWay()
		at = nil
		w.s.Lead("self") // the entry that began the reign told the time
		pass(21500 * time.Millisecond)
		if want := []string{"21s 0"}; !slices.Equal(at, want) {
			t.Errorf("after a change of leader entries were sealed at %q, want %q", at, want)
		}
	})
}

// More grants fit into an entry than are made while the lock is held once elsewhere.
func TestAClustersEntryHoldsManyGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		a, b := w.open(), w.open()
		a.acquire(1, "first", 0, lease30)
		for i := range uint64(maxCommands + 10) {
			b.acquire(i, fmt.Sprint(i), wait60, lease30)
		}
		if n := w.s.Gathered(); n != maxCommands+10 {
			t.Errorf("%d commands have gathered, want %d", n, maxCommands+10)
		}
		w.commit()
		for _, want := range []int{maxCommands, 10} {
			if got := len(w.underWay()); got != want {
				t.Fatalf("%d grants in the entry, want %d", got, want)
			}
			w.commit()
		}
	})
}

func TestAGrantNamesItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLeader(t, DefaultLimits(), nil)
		w.open().acquire(1, "a", 0, lease30)
		w.commit()
		if g, _ := w.slow.Current("a", 0); g.Holder != "holder" {
			t.Errorf("held by %q", g.Holder)
		}
	})
}
