package service

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/wire"
)

// A gate closes at nine tenths of its limit and opens below three quarters, to the
// unit (docs/PROTOCOL.md, section 4).
func TestGateEdges(t *testing.T) {
	for _, test := range []struct {
		limit  int
		closes int // the lowest use at which it closes
		opens  int // the highest use at which it opens again
	}{
		{wire.MaxKeysSingle, 943_719, 786_431},
		{wire.MaxKeysCluster, 58_983, 49_151},
		{wire.MaxWaiters, 58_983, 49_151},
		{wire.DefaultWaiters, 14_746, 12_287},
		{wire.MaxAcquiresInFlight, 3_687, 3_071},
		{10, 9, 7},
		{4, 4, 2},
	} {
		g := gate{limit: test.limit}
		for _, step := range []struct {
			use    int
			closed bool
		}{
			{0, false},
			{test.closes - 1, false},
			{test.closes, true},
			{test.closes - 1, true},
			{test.opens + 1, true},
			{test.opens, false},
			{test.opens + 1, false},
			{test.closes - 1, false},
			{test.limit, true},
			{0, false},
		} {
			was := g.closed
			changed := g.set(step.use)
			if g.closed != step.closed || changed != (was != step.closed) {
				t.Errorf("limit %d, use %d: closed %v, changed %v; want closed %v", test.limit, step.use, g.closed, changed, step.closed)
			}
		}
	}
}

// What each gate refuses while it is closed, and what passes it all the same.
func TestClosedGates(t *testing.T) {
	const long = 60 * time.Second
	for _, test := range []struct {
		name   string
		limits Limits
		use    func(*world) // closes the gate; "held" is held by token 1, "waited" by 2 with a waiter
		gate   Gate
		want   map[string]string // what an acquire of the key with that wait is told
	}{
		{
			name:   "keys",
			limits: Limits{Keys: 10},
			use: func(w *world) {
				for i := range 7 {
					w.open().acquire(uint64(i), fmt.Sprint("more", i), 0, long)
				}
			},
			gate: GateKeys,
			want: map[string]string{
				"free, wait 0":   "B",
				"free, wait 5":   "B",
				"held, wait 0":   "T",
				"held, wait 5":   "",
				"waited, wait 0": "T",
				"waited, wait 5": "",
			},
		},
		{
			name:   "waiters",
			limits: Limits{Waiters: 10},
			use: func(w *world) {
				for i := range 8 {
					w.open().acquire(uint64(i), "waited", long, long)
				}
			},
			gate: GateWaiters,
			want: map[string]string{
				"free, wait 0":   "A",
				"free, wait 5":   "A",
				"held, wait 0":   "T",
				"held, wait 5":   "B",
				"waited, wait 0": "T",
				"waited, wait 5": "B",
			},
		},
		{
			name:   "acquires",
			limits: Limits{Acquires: 10},
			use: func(w *world) {
				for i := range 9 {
					w.open().acquire(uint64(i), fmt.Sprint("more", i), 0, long)
				}
			},
			gate: GateAcquires,
			want: map[string]string{
				"free, wait 0":   "B",
				"free, wait 5":   "B",
				"held, wait 0":   "B",
				"held, wait 5":   "B",
				"waited, wait 0": "B",
				"waited, wait 5": "B",
			},
		},
	} {
		for acquire, want := range test.want {
			t.Run(test.name+": "+acquire, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var key string
					var wait int
					fmt.Sscanf(acquire, "%s wait %d", &key, &wait)
					key = key[:len(key)-1]

					w := newSlowWorld(t, fill(test.limits), nil)
					a, c := w.open(), w.open()
					a.acquire(1, "held", 0, long)
					w.commitAll()
					a.acquire(2, "waited", 0, long)
					w.commitAll()
					a.acquire(3, "waited", long, long)
					a.take()
					test.use(w)
					if test.gate != GateAcquires { // whose use is what is under way
						w.commitAll()
					}
					if st := w.s.Stats().Gates[test.gate]; !st.Closed || 10*st.Use != 9*st.Limit {
						t.Fatalf("the gate is %+v, want it closed at nine tenths", st)
					}

					c.acquire(100, key, time.Duration(wait)*time.Second, long)
					if test.gate != GateAcquires {
						w.commitAll()
					}
					got := ""
					for _, answer := range c.take() {
						got += letter[answer.Outcome]
					}
					if got != want {
						t.Errorf("told %q, want %q", got, want)
					}

					c.release("held", 1) // releases never pass a gate
					w.commitAll()
					if got := c.take(); len(got) == 0 || got[0].String() != "0s R held token=1" {
						t.Errorf("a release was told %v", got)
					}
				})
			})
		}
	}
}

// fill sets what is zero to values that are out of the way.
func fill(l Limits) Limits {
	for _, n := range []*int{&l.WaitersPerKey, &l.Waiters, &l.Keys, &l.Acquires, &l.Releases} {
		if *n == 0 {
			*n = 1000
		}
	}
	return l
}

// A gate that closed stays closed until its use is below three quarters, and a
// lease that ends counts as well as a release.
func TestAGateOpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newWorld(t, fill(Limits{Keys: 10}), &rec)
		c := w.open()
		for i := range 9 {
			lease := 20 * time.Second
			if i == 8 {
				lease = 10 * time.Second
			}
			c.acquire(uint64(i), fmt.Sprint(i), 0, lease)
		}
		c.take()
		c.acquire(10, "new", 0, 30*time.Second)
		c.want("0s B new owner=10")
		c.release("0", 1)
		c.want("0s R 0 token=1")
		c.acquire(11, "new", 0, 30*time.Second)
		c.want("0s B new owner=11") // eight are active

		w.sleepUntil(10*time.Second - 1)
		c.acquire(12, "new", 0, 30*time.Second)
		c.want("9.999999999s B new owner=12")
		w.sleepUntil(10 * time.Second)
		c.acquire(13, "new", 0, 30*time.Second)
		c.want("10s A new owner=13 token=10")
		if want := []gateEvent{{GateKeys, true}, {GateKeys, false}}; fmt.Sprint(rec.gates) != fmt.Sprint(want) {
			t.Errorf("the observer was told %v, want %v", rec.gates, want)
		}
	})
}

// The waiters of one key have a plain limit; one whose grant is under way is no
// waiter any more.
func TestWaitersPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, fill(Limits{WaitersPerKey: 2}), nil)
		c := w.open()
		c.acquire(1, "a", 60*time.Second, 30*time.Second) // under way
		c.acquire(2, "a", 60*time.Second, 30*time.Second)
		c.acquire(3, "a", 60*time.Second, 30*time.Second)
		c.acquire(4, "a", 60*time.Second, 30*time.Second)
		c.acquire(5, "a", 0, 30*time.Second)
		c.want("0s B a owner=4", "0s T a owner=5")
		c.acquire(6, "b", 60*time.Second, 30*time.Second)
		c.acquire(7, "b", 60*time.Second, 30*time.Second)
		c.want()
		w.check()
	})
}

// The gate of waiters, at the highest limit that can be set, is exact in use too.
func TestTheWaitersGateAtItsHighestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := DefaultLimits()
		l.Waiters, l.WaitersPerKey = wire.MaxWaiters, wire.MaxWaitersPerKey
		s := New(local.New(1), Config{Limits: l})
		defer s.Close()
		c := s.Open(silent{}, "")
		for key := range 4 {
			s.Acquire(c, Acquire{Key: fmt.Sprint(key), Lease: 250 * time.Second})
		}
		for i := range wire.MaxWaiters {
			s.Acquire(c, Acquire{Key: fmt.Sprint(i % 4), Wait: 60 * time.Second, Lease: time.Second})
		}
		if got := s.Stats(); got.Waiters != 58_983 || !got.Gates[GateWaiters].Closed {
			t.Errorf("%+v, want 58,983 waiters and the gate closed", got)
		}
	})
}
