package service

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// recorder notes what an observer is told, and what it is told twice.
type recorder struct {
	acquires map[uint64]AcquireEvent // by owner
	releases []ReleaseEvent
	ended    []LeaseEvent
	gates    []gateEvent
	twice    []AcquireEvent
	answered map[uint64]int // how often it was told so, by owner
}

type gateEvent struct {
	gate   Gate
	closed bool
}

func (r *recorder) AcquireDecided(e AcquireEvent) (answered func()) {
	if r.acquires == nil {
		r.acquires = make(map[uint64]AcquireEvent)
		r.answered = make(map[uint64]int)
	}
	if _, known := r.acquires[e.Owner]; known {
		r.twice = append(r.twice, e)
	}
	r.acquires[e.Owner] = e
	return func() { r.answered[e.Owner]++ }
}

func (r *recorder) ReleaseDecided(e ReleaseEvent) { r.releases = append(r.releases, e) }
func (r *recorder) LeaseEnded(e LeaseEvent)       { r.ended = append(r.ended, e) }
func (r *recorder) GateChanged(gate Gate, closed bool) {
	r.gates = append(r.gates, gateEvent{gate, closed})
}

// Every acquire, every release and every lease that ends is reported once, with
// what is known of it.
func TestWhatTheObserverIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newWorld(t, fill(Limits{WaitersPerKey: 3}), &rec)
		a, b, c := w.open(), w.open(), w.open()
		a.acquire(1, "a", 0, 10*time.Second)
		w.sleepUntil(time.Second)
		b.acquire(2, "a", 0, 10*time.Second)
		b.acquire(3, "a", 60*time.Second, 10*time.Second)
		c.acquire(4, "a", 60*time.Second, 10*time.Second)
		b.acquire(5, "a", 3*time.Second, 10*time.Second)
		b.acquire(6, "a", 60*time.Second, 10*time.Second)
		w.sleepUntil(5 * time.Second)
		c.leave()
		b.release("a", 1)
		b.release("a", 1)
		b.release("a", 0) // a probe is not reported
		w.sleepUntil(15 * time.Second)
		w.s.Abandon("a", 2) // has ended by then

		start := w.s.start
		at := func(seconds time.Duration) time.Time { return start.Add(seconds * time.Second) }
		one := EntryInfo{Commands: 1}
		released := End{Token: 1, At: at(5), Held: 5 * time.Second, Entry: EntryInfo{Commands: 2}}
		for owner, want := range map[uint64]AcquireEvent{
			1: {Result: AcquireGranted, Token: 1, At: at(0), Entry: one},
			2: {Result: AcquireTimedOut, At: at(1)},
			3: {Result: AcquireGranted, Token: 2, At: at(1), Wait: time.Minute, Waited: 4 * time.Second, Proposed: 4 * time.Second, Freed: released, Entry: EntryInfo{Commands: 2}},
			4: {Result: AcquireGone, At: at(1), Wait: time.Minute, Waited: 4 * time.Second, Position: 1},
			5: {Result: AcquireTimedOut, At: at(1), Wait: 3 * time.Second, Waited: 3 * time.Second, Position: 2},
			6: {Result: AcquireBusy, Refused: RefusedKeyWaiters, At: at(1), Wait: time.Minute},
		} {
			want.Key, want.Owner, want.Lease = "a", owner, 10*time.Second
			if got := rec.acquires[owner]; got != want {
				t.Errorf("told of owner %d\n\t%+v, want\n\t%+v", owner, got, want)
			}
		}
		if len(rec.acquires) != 6 || len(rec.twice) > 0 {
			t.Errorf("told of %d acquires, twice of %v", len(rec.acquires), rec.twice)
		}
		if want := []ReleaseEvent{
			{"a", true, released},
			{"a", false, End{Token: 1, At: at(5), Entry: one}},
			{"a", false, End{Token: 2, At: at(15), Entry: one}},
		}; !slices.Equal(rec.releases, want) {
			t.Errorf("told of the releases %+v, want %+v", rec.releases, want)
		}
		if want := []LeaseEvent{{"a", End{Token: 2, Owner: 3, Expired: true, At: at(15), Held: 10 * time.Second}}}; !slices.Equal(rec.ended, want) {
			t.Errorf("told of the ended leases %+v, want %+v", rec.ended, want)
		}
		if rec.answered[4] != 1 { // of one that gets no answer it is told at once; the others' sessions tell it
			t.Errorf("told of an acquire without an answer, %v", rec.answered)
		}
	})
}

// What a request waits for an elected node to serve, or a release for its lane, is a part
// of its way: it counts from when it was parsed.
func TestWaitingForANodeToServeIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		w := newCluster(t, DefaultLimits(), &rec)
		a, b := w.open(), w.open()
		w.sleepUntil(time.Second)
		w.s.Elected()
		over := []func() bool{acquiring(1, "a")(a), releasing("x", 9)(b)}
		w.sleepUntil(5 * time.Second)
		w.s.Lead("self")
		synctest.Wait()
		w.commitAll()
		synctest.Wait()
		for _, over := range over {
			if !over() {
				t.Fatal("a request still waits")
			}
		}
		parsed := w.s.start.Add(time.Second)
		if e := rec.acquires[1]; !e.At.Equal(parsed) || e.Waited != 4*time.Second || e.Proposed != 4*time.Second {
			t.Errorf("told of an acquire %+v, want one that was parsed at 1s and waited 4s", e)
		}
		if len(rec.releases) != 1 || rec.releases[0].Took != 4*time.Second {
			t.Errorf("told of the releases %+v, want one that took 4s", rec.releases)
		}
	})
}

// Stats tells the longest queue and the longest wait of those that wait now.
func TestTheLongestQueueAndTheOldestWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, DefaultLimits(), nil)
		want := func(waiters, longest int, oldest time.Duration) {
			t.Helper()
			if st := w.s.Stats(); st.Waiters != waiters || st.LongestQueue != longest || st.OldestWait != oldest {
				t.Errorf("%d waiters, the longest queue %d, the oldest waits for %v; want %d, %d, %v", st.Waiters, st.LongestQueue, st.OldestWait, waiters, longest, oldest)
			}
		}
		a, b := w.open(), w.open()
		a.acquire(1, "a", 0, 100*time.Second)
		a.acquire(2, "b", 0, 100*time.Second)
		want(0, 0, 0)
		b.acquire(3, "a", 10*time.Second, lease30)
		w.sleepUntil(2 * time.Second)
		a.acquire(4, "a", 60*time.Second, lease30)
		a.acquire(5, "b", 60*time.Second, lease30)
		w.sleepUntil(5 * time.Second)
		want(3, 2, 5*time.Second)
		w.sleepUntil(10 * time.Second) // the oldest times out
		want(2, 1, 8*time.Second)
		a.release("a", 1)
		want(1, 1, 8*time.Second)
		a.leave()
		want(0, 0, 0)
	})
}

// Everybody who shows a result calls it the same, and each has a name of its own.
func TestResultNames(t *testing.T) {
	seen := map[string]bool{"": true}
	for r := AcquireGranted; r <= AcquireTurnedAway; r++ {
		if name := r.String(); seen[name] || name == AcquireResult(0).String() {
			t.Errorf("result %d is named %q", r, name)
		} else {
			seen[name] = true
		}
	}
}

func TestGateNames(t *testing.T) {
	for gate, want := range map[Gate]string{GateAcquires: "acquires", GateKeys: "keys", GateWaiters: "waiters", gateCount: "unknown"} {
		if got := gate.String(); got != want {
			t.Errorf("gate %d is named %q, want %q", gate, got, want)
		}
	}
}
