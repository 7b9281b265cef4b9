package trace

import (
	"slices"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
)

const (
	// recentMax is how many traces stay in memory: about a megabyte.
	recentMax = 512
	// slowestMax is how many of the slowest acquires of each outcome stay besides.
	slowestMax = 32
)

// Ring has the last traces, and of each outcome of an acquire the slowest ones, so that
// they can be looked at without a collector. They are built when somebody looks. Its methods
// may be called from any goroutine.
type Ring struct {
	build func(*request) *Trace

	mu      sync.Mutex
	recent  []request // a ring once it is full
	next    int
	slowest [service.AcquireTurnedAway + 1][]request // by outcome; the slowest first
}

func newRing(build func(*request) *Trace) *Ring { return &Ring{build: build} }

func (r *Ring) add(list []request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		if len(r.recent) < recentMax {
			r.recent = append(r.recent, list[i])
		} else {
			r.recent[r.next] = list[i]
			r.next = (r.next + 1) % recentMax
		}
		if list[i].acquire != nil {
			r.addSlow(&list[i])
		}
	}
}

func (r *Ring) addSlow(q *request) {
	list := r.slowest[q.acquire.Result]
	if n := len(list); n == slowestMax && list[n-1].took() >= q.took() {
		return
	}
	at, _ := slices.BinarySearchFunc(list, q.took(), func(o request, d time.Duration) int {
		if o.took() >= d { // of equals the older one stays before
			return -1
		}
		return 1
	})
	list = slices.Insert(list, at, *q)
	r.slowest[q.acquire.Result] = list[:min(len(list), slowestMax)]
}

// Recent returns the last traces, the newest first. Nobody may change them.
func (r *Ring) Recent() []*Trace {
	r.mu.Lock()
	list := append(slices.Clone(r.recent[r.next:]), r.recent[:r.next]...)
	r.mu.Unlock()
	slices.Reverse(list)
	return r.traces(list)
}

// Slowest returns the slowest acquires of an outcome (service.AcquireResult has their names), the slowest first.
func (r *Ring) Slowest(outcome string) []*Trace {
	for result := range r.slowest {
		if result != 0 && service.AcquireResult(result).String() == outcome {
			r.mu.Lock()
			list := slices.Clone(r.slowest[result])
			r.mu.Unlock()
			return r.traces(list)
		}
	}
	return nil
}

func (r *Ring) traces(list []request) []*Trace {
	traces := make([]*Trace, len(list))
	for i := range list {
		traces[i] = r.build(&list[i])
	}
	return traces
}
