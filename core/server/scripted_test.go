package server

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ticketing-io/ticketing/core/service"
)

// scripted is a Service that does what its test says, and remembers.
type scripted struct {
	onAcquire func(service.Sink, service.Acquire) // nil: nothing, as if it had to wait
	onRelease func(sink service.Sink, key string, token uint64)

	mu        sync.Mutex
	sinks     map[*service.Session]service.Sink
	asked     int    // acquires and releases
	leader    string // of which sessions are told when they open; empty as on a single server
	unready   bool   // they are told of none
	holder    string // of the session opened last
	abandoned []string
	left      map[*service.Session]int
}

func (f *scripted) Open(sink service.Sink, holder string) *service.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := new(service.Session)
	if f.sinks == nil {
		f.sinks = make(map[*service.Session]service.Sink)
		f.left = make(map[*service.Session]int)
	}
	f.sinks[c] = sink
	f.holder = holder
	if !f.unready {
		sink.Leader(f.leader)
	}
	return c
}

func (f *scripted) ask(c *service.Session) service.Sink {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.sinks[c]
}

func (f *scripted) Acquire(c *service.Session, a service.Acquire) {
	if sink := f.ask(c); f.onAcquire != nil {
		f.onAcquire(sink, a)
	}
}

func (f *scripted) Release(c *service.Session, key string, token uint64) {
	if sink := f.ask(c); f.onRelease != nil {
		f.onRelease(sink, key, token)
	}
}

func (f *scripted) Abandon(key string, token uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = append(f.abandoned, fmt.Sprintf("%s %d", key, token))
}

func (f *scripted) Leave(c *service.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[c]++
}

func (f *scripted) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// sink returns the sink of the one session there is, once it is open.
func (f *scripted) sink() service.Sink {
	synctest.Wait()
	return f.anySink()
}

// anySink returns the sink of some session, or nil.
func (f *scripted) anySink() service.Sink {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sinks {
		return s
	}
	return nil
}

// answering is a Service that answers every release at once, and parks every
// acquire for its test to decide.
func answering() *scripted {
	return &scripted{onRelease: func(sink service.Sink, key string, token uint64) {
		sink.Deliver(service.Answer{Outcome: service.Released, Key: key, Token: token})
	}}
}

// decide has others decide n acquires of a session in one event.
func decide(sink service.Sink, n int) {
	for i := range n {
		sink.Deliver(service.Answer{Outcome: service.TimedOut, Key: "k", Owner: uint64(i)})
	}
	sink.Flush()
}

// grant has others grant a key to a session.
func grant(sink service.Sink, key string, token uint64) {
	sink.Deliver(service.Answer{Outcome: service.Granted, Key: key, Token: token, Owner: token})
	sink.Flush()
}

// expectAbandoned fails the test unless exactly these grants were given back.
func (f *scripted) expectAbandoned(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.abandoned, want) {
		t.Errorf("given back: %q, want %q", f.abandoned, want)
	}
}
