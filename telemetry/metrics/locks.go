package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

// Locks counts acquires, grants and admission. Its methods are called as the service's
// observer is: one after the other, and they must be quick.
type Locks struct {
	noted noted

	acquires [service.AcquireTurnedAway + 1]prometheus.Counter
	waits    [service.AcquireTurnedAway + 1]prometheus.Observer // nil where waiting has no meaning
	depth    prometheus.Histogram
	tokens   prometheus.Counter
	refusals [service.RefusedNotProposed + 1]prometheus.Counter

	released, notCurrent   prometheus.Counter
	expiries               prometheus.Counter
	heldReleased, heldOver prometheus.Observer
	expiryLag              prometheus.Histogram

	transitions map[service.Gate][2]prometheus.Counter // to open, to closed
}

// waited are the results of acquires that were let in, and so may have waited.
var waited = []service.AcquireResult{service.AcquireGranted, service.AcquireTimedOut, service.AcquireUnknown}

// refusals is how the reasons for Busy are called: which gate, and why.
var refusals = map[service.Refusal][2]string{
	service.RefusedAcquires:    {service.GateAcquires.String(), "closed"},
	service.RefusedKeys:        {service.GateKeys.String(), "closed"},
	service.RefusedWaiters:     {service.GateWaiters.String(), "closed"},
	service.RefusedKeyWaiters:  {service.GateWaiters.String(), "key_limit"},
	service.RefusedDraining:    {service.GateAcquires.String(), "draining"},
	service.RefusedQuiet:       {service.GateAcquires.String(), "quiet"},
	service.RefusedNotProposed: {service.GateAcquires.String(), "not_proposed"},
}

// gates are the gates of admission.
var gates = []service.Gate{service.GateAcquires, service.GateKeys, service.GateWaiters}

func newLocks(f factory) *Locks {
	l := &Locks{
		depth: f.histogram("ticketing_acquire_queue_depth",
			"Acquires before an acquire in its key's queue when it came. Without those that were refused.", depthBuckets),
		tokens:    f.counter("ticketing_tokens_granted_total", "Tokens that acquires were granted."),
		expiries:  f.counter("ticketing_expiries_total", "Grants whose lease ran out before they were released."),
		expiryLag: f.histogram("ticketing_expiry_lag_seconds", "How long after its lease's end an expired grant left the table.", lagBuckets),

		transitions: map[service.Gate][2]prometheus.Counter{},
	}
	f.counter("ticketing_forced_releases_total", "Grants that an operator ended.")
	l.makeAcquires(f)
	l.makeReleases(f)
	return l
}

func (l *Locks) makeAcquires(f factory) {
	acquires := f.counters("ticketing_acquires_total", "Acquires that ended, by how.", "outcome")
	for result := service.AcquireGranted; result <= service.AcquireTurnedAway; result++ {
		l.acquires[result] = acquires.WithLabelValues(result.String())
	}
	waits := f.histograms("ticketing_acquire_wait_seconds", "From an acquire being read to its being decided.", waitBuckets, "outcome")
	for _, result := range waited {
		l.waits[result] = waits.WithLabelValues(result.String())
	}
	refused := f.counters("ticketing_admission_refusals_total", "Acquires that were answered busy, by the gate that refused them and why.", "gate", "reason")
	for refusal, names := range refusals {
		l.refusals[refusal] = refused.WithLabelValues(names[:]...)
	}
	transitions := f.counters("ticketing_admission_transitions_total", "How often a gate of admission closed or opened.", "gate", "to")
	for _, g := range gates {
		l.transitions[g] = [2]prometheus.Counter{
			transitions.WithLabelValues(g.String(), "open"), transitions.WithLabelValues(g.String(), "closed"),
		}
	}
}

func (l *Locks) makeReleases(f factory) {
	releases := f.counters("ticketing_releases_total", "Releases that were decided, by whether their token was the current one.", "result")
	l.released, l.notCurrent = releases.WithLabelValues("released"), releases.WithLabelValues("not_current")
	holds := f.histograms("ticketing_hold_seconds", "From a grant to its end, by how it ended.", holdBuckets, "end")
	l.heldReleased, l.heldOver = holds.WithLabelValues("released"), holds.WithLabelValues("expired")
}

// Acquire counts an acquire that ended. The id is that of its trace, zero when none is kept.
func (l *Locks) Acquire(e service.AcquireEvent, id trace.TraceID) {
	l.note(note{
		took: e.Waited, depth: int32(e.Position), result: e.Result, refused: e.Refused, granted: e.Token != 0, trace: id,
	})
}

// Release counts a release that was decided.
func (l *Locks) Release(e service.ReleaseEvent) {
	if e.Current {
		l.note(note{took: e.Held})
	} else {
		l.notCurrent.Inc()
	}
}

// LeaseEnded counts a grant whose lease ran out.
func (l *Locks) LeaseEnded(e service.LeaseEvent) {
	l.expiries.Inc()
	l.expiryLag.Observe(e.Lag.Seconds())
	if e.Held > 0 {
		l.heldOver.Observe(e.Held.Seconds())
	}
}

// GateChanged counts a gate that closed or opened.
func (l *Locks) GateChanged(g service.Gate, closed bool) {
	to := l.transitions[g]
	if closed {
		to[1].Inc()
	} else {
		to[0].Inc()
	}
}
