package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

// notedMax is how many requests are counted together: some ten microseconds' work, since
// the service's lock is held for it.
const notedMax = 64

// noted has requests that are over and not counted yet. The counters and histograms of one
// request are a dozen cache lines, which the cores of a busy server would take from each
// other at each request; a note is half of one.
type noted struct {
	mu   sync.Mutex
	n    int
	list [notedMax]note
}

// note is a request that is over, as far as it is counted.
type note struct {
	took    time.Duration // an acquire: how long it waited; a release: how long the key was held
	depth   int32
	result  service.AcquireResult // 0 for a release of the current token
	refused service.Refusal
	granted bool
	trace   trace.TraceID // of an acquire; zero when none of it is kept
}

// note takes note of a request, and counts what has gathered when there is no more room.
func (l *Locks) note(n note) {
	l.noted.mu.Lock()
	defer l.noted.mu.Unlock()
	l.noted.list[l.noted.n] = n
	l.noted.n++
	if l.noted.n == notedMax {
		l.countNoted()
	}
}

// Settle counts all that was noted. A scrape begins with it.
func (l *Locks) Settle() {
	l.noted.mu.Lock()
	defer l.noted.mu.Unlock()
	l.countNoted()
}

// countNoted counts what was noted. The slowest acquire with a trace is made an exemplar:
// one costs as much as counting a dozen requests.
func (l *Locks) countNoted() {
	slowest := -1
	for i := range l.noted.list[:l.noted.n] {
		n := &l.noted.list[i]
		if n.trace.IsValid() && l.waits[n.result] != nil && (slowest < 0 || n.took > l.noted.list[slowest].took) {
			slowest = i
		}
	}
	for i := range l.noted.list[:l.noted.n] {
		n := &l.noted.list[i]
		if n.result == 0 {
			l.countRelease(n)
		} else {
			l.countAcquire(n, i == slowest)
		}
	}
	l.noted.n = 0
}

func (l *Locks) countRelease(n *note) {
	l.released.Inc()
	if n.took > 0 {
		l.heldReleased.Observe(n.took.Seconds())
	}
}

func (l *Locks) countAcquire(n *note, exemplar bool) {
	l.acquires[n.result].Inc()
	if n.granted {
		l.tokens.Inc()
	}
	if n.result == service.AcquireBusy {
		if c := l.refusals[n.refused]; c != nil {
			c.Inc()
		}
	}
	wait := l.waits[n.result]
	if wait == nil {
		return
	}
	l.depth.Observe(float64(n.depth))
	if !exemplar {
		wait.Observe(n.took.Seconds())
		return
	}
	wait.(prometheus.ExemplarObserver).ObserveWithExemplar(n.took.Seconds(), prometheus.Labels{"trace_id": n.trace.String()})
}
