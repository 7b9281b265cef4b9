package trace

import (
	"slices"
	"sync"
	"time"
)

const (
	// recentMax is how many traces stay in memory: about a megabyte.
	recentMax = 512
	// slowestMax is how many of the slowest acquires of each outcome stay besides.
	slowestMax = 32
)

// Ring has the last traces, and of each outcome of an acquire the slowest ones, so that
// they can be looked at without a collector. Its methods may be called from any goroutine.
type Ring struct {
	mu      sync.Mutex
	recent  []*Trace // a ring once it is full
	next    int
	slowest map[string][]*Trace // by outcome; the slowest first
}

func newRing() *Ring { return &Ring{slowest: make(map[string][]*Trace)} }

func (r *Ring) add(t *Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recent) < recentMax {
		r.recent = append(r.recent, t)
	} else {
		r.recent[r.next] = t
		r.next = (r.next + 1) % recentMax
	}
	if t.Outcome == "" {
		return
	}
	list := r.slowest[t.Outcome]
	at, _ := slices.BinarySearchFunc(list, t.Duration(), func(o *Trace, d time.Duration) int {
		if o.Duration() >= d { // of equals the older one stays before
			return -1
		}
		return 1
	})
	if at == slowestMax {
		return
	}
	list = slices.Insert(list, at, t)
	r.slowest[t.Outcome] = list[:min(len(list), slowestMax)]
}

// Recent returns the last traces, the newest first. Nobody may change them.
func (r *Ring) Recent() []*Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := append(slices.Clone(r.recent[r.next:]), r.recent[:r.next]...)
	slices.Reverse(list)
	return list
}

// Slowest returns the slowest acquires of an outcome (service.AcquireResult has their names), the slowest first.
func (r *Ring) Slowest(outcome string) []*Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.slowest[outcome])
}
