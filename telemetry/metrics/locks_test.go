package metrics

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

// Each end of an acquire counts under its own name, with its wait where waiting has a
// meaning.
func TestAcquiresCountByOutcome(t *testing.T) {
	for _, test := range []struct {
		result  service.AcquireResult
		outcome string
		waited  bool
	}{
		{service.AcquireGranted, "granted", true},
		{service.AcquireTimedOut, "timeout", true},
		{service.AcquireBusy, "busy", false},
		{service.AcquireGone, "gone", false},
		{service.AcquireExhausted, "exhausted", false},
		{service.AcquireUnknown, "unknown", true},
		{service.AcquireTurnedAway, "moved", false},
	} {
		m := New(Config{})
		m.Acquire(service.AcquireEvent{Result: test.result, Waited: time.Second, Position: 3}, trace.TraceID{})
		if value(t, m, "ticketing_acquires_total", test.outcome) != 1 {
			t.Errorf("%s is not counted", test.outcome)
		}
		depth := value(t, m, "ticketing_acquire_queue_depth")
		if !test.waited {
			if depth != 0 {
				t.Errorf("%s: the queue's depth counts", test.outcome)
			}
			continue
		}
		if wait := value(t, m, "ticketing_acquire_wait_seconds", test.outcome); wait != 1 || depth != 1 {
			t.Errorf("%s: %v waits and %v depths, want 1 and 1", test.outcome, wait, depth)
		}
	}
}

// Each reason for busy counts under the gate that refused.
func TestRefusalsCountByGateAndReason(t *testing.T) {
	for refusal, want := range map[service.Refusal][]string{
		service.RefusedAcquires:    {"acquires", "closed"},
		service.RefusedKeys:        {"keys", "closed"},
		service.RefusedWaiters:     {"waiters", "closed"},
		service.RefusedKeyWaiters:  {"waiters", "key_limit"},
		service.RefusedDraining:    {"acquires", "draining"},
		service.RefusedQuiet:       {"acquires", "quiet"},
		service.RefusedNotProposed: {"acquires", "not_proposed"},
	} {
		m := New(Config{})
		m.Acquire(service.AcquireEvent{Result: service.AcquireBusy, Refused: refusal}, trace.TraceID{})
		total := 0.0
		for _, s := range families(t, m)["ticketing_admission_refusals_total"].GetMetric() {
			total += read(s)
		}
		if value(t, m, "ticketing_admission_refusals_total", want...) != 1 || total != 1 {
			t.Errorf("%v: of %v refusals none is of %v", refusal, total, want)
		}
	}
}

// A grant ends once: released, or expired. How long it was held counts where that is known.
func TestEndsOfGrants(t *testing.T) {
	m := New(Config{})
	m.Release(service.ReleaseEvent{Current: true, End: service.End{Held: time.Second}})
	m.Release(service.ReleaseEvent{Current: true}) // granted under an earlier leader
	m.Release(service.ReleaseEvent{})
	m.LeaseEnded(service.LeaseEvent{End: service.End{Expired: true, Held: time.Minute, Lag: time.Millisecond}})
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"ticketing_releases_total", []string{"released"}, 2},
		{"ticketing_releases_total", []string{"not_current"}, 1},
		{"ticketing_hold_seconds", []string{"released"}, 1},
		{"ticketing_hold_seconds", []string{"expired"}, 1},
		{"ticketing_expiries_total", nil, 1},
		{"ticketing_expiry_lag_seconds", nil, 1},
	} {
		if got := value(t, m, want.name, want.labels...); got != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
}

func TestGatesCountTheirChanges(t *testing.T) {
	m := New(Config{})
	m.GateChanged(service.GateWaiters, true)
	m.GateChanged(service.GateWaiters, true)
	m.GateChanged(service.GateWaiters, false)
	closed, open := value(t, m, "ticketing_admission_transitions_total", "waiters", "closed"), value(t, m, "ticketing_admission_transitions_total", "waiters", "open")
	if closed != 2 || open != 1 {
		t.Errorf("closed %v times, opened %v times, want 2 and 1", closed, open)
	}
}
