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
}

type gateEvent struct {
	gate   Gate
	closed bool
}

func (r *recorder) AcquireDecided(e AcquireEvent) {
	if r.acquires == nil {
		r.acquires = make(map[uint64]AcquireEvent)
	}
	if _, known := r.acquires[e.Owner]; known {
		r.twice = append(r.twice, e)
	}
	r.acquires[e.Owner] = e
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

		for owner, want := range map[uint64]AcquireEvent{
			1: {Result: AcquireGranted, Token: 1},
			2: {Result: AcquireTimedOut},
			3: {Result: AcquireGranted, Token: 2, Waited: 4 * time.Second},
			4: {Result: AcquireGone, Waited: 4 * time.Second, Position: 1},
			5: {Result: AcquireTimedOut, Waited: 3 * time.Second, Position: 2},
			6: {Result: AcquireBusy},
		} {
			want.Key, want.Owner = "a", owner
			if got := rec.acquires[owner]; got != want {
				t.Errorf("told of owner %d\n\t%+v, want\n\t%+v", owner, got, want)
			}
		}
		if len(rec.acquires) != 6 || len(rec.twice) > 0 {
			t.Errorf("told of %d acquires, twice of %v", len(rec.acquires), rec.twice)
		}
		if want := []ReleaseEvent{{"a", 1, true}, {"a", 1, false}, {"a", 2, false}}; !slices.Equal(rec.releases, want) {
			t.Errorf("told of the releases %v, want %v", rec.releases, want)
		}
		if want := []LeaseEvent{{"a", 2, 3}}; !slices.Equal(rec.ended, want) {
			t.Errorf("told of the ended leases %v, want %v", rec.ended, want)
		}
	})
}

func TestGateNames(t *testing.T) {
	for gate, want := range map[Gate]string{GateAcquires: "acquires", GateKeys: "keys", GateWaiters: "waiters", gateCount: "unknown"} {
		if got := gate.String(); got != want {
			t.Errorf("gate %d is named %q, want %q", gate, got, want)
		}
	}
}
