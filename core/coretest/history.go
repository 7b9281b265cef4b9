package coretest

import (
	"fmt"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
)

// Outcome is what a client knows of an operation that it asked for.
type Outcome uint8

// The outcomes. Those of core/service are told by the node.
const (
	// Unknown: the session ended first. It may have happened, or may happen yet.
	Unknown Outcome = iota
	// Granted: with the operation's token.
	Granted
	// TimedOut and Busy: certainly not granted.
	TimedOut
	Busy
	// Released: the grant ended by this release.
	Released
	// NotCurrent: the token is not the key's current one.
	NotCurrent
)

var outcomes = map[service.Outcome]Outcome{
	service.Granted: Granted, service.TimedOut: TimedOut, service.Busy: Busy,
	service.Released: Released, service.NotCurrent: NotCurrent,
}

// String returns the outcome's name.
func (o Outcome) String() string {
	return [...]string{"unknown", "granted", "timed out", "busy", "released", "not current"}[o]
}

// moment is a point of the history: its place among all others, and its time.
type moment struct {
	place int64 // no two are equal: what one goroutine saw before another began has the lower one
	at    time.Duration
}

// Operation is one acquire or release of a client.
type Operation struct {
	Client int
	Key    string
	Node   string // that was asked, and its
	Stay   int64  // session's number: waiters of one stay of one leader are first come, first served
	Owner  uint64 // of an acquire: its own alone; 0 for a release
	Wait   time.Duration
	Lease  time.Duration
	Token  uint64 // that was granted, or to be released

	Outcome  Outcome
	call     moment
	accepted moment // when the service had it, so that what is asked later is behind it; 0 before
	end      moment // when its outcome was known, or its session ended
}

func (o *Operation) acquire() bool { return o.Owner != 0 }

// String returns the operation as it is printed beside a failure.
func (o *Operation) String() string {
	what := fmt.Sprintf("release %d", o.Token)
	if o.acquire() {
		what = fmt.Sprintf("acquire wait=%v lease=%v owner=%d", o.Wait, o.Lease, o.Owner)
	}
	return fmt.Sprintf("[%12v %12v] client %d, %s: %s %s -> %v %d", o.call.at, o.end.at, o.Client, o.Node, o.Key, what, o.Outcome, o.Token)
}

// History is what all clients asked for and were told.
type History struct {
	mu         sync.Mutex
	began      time.Time
	places     int64
	owners     uint64
	asked      map[uint64]time.Duration // when each owner's acquire was
	operations []*Operation
}

// NewHistory returns an empty history, which begins now.
func NewHistory() *History {
	return &History{began: time.Now(), asked: make(map[uint64]time.Duration)}
}

func (h *History) now() moment {
	h.places++
	return moment{h.places, time.Since(h.began)}
}

// Begin notes that an operation is asked for. An acquire gets its owner.
func (h *History) Begin(o *Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Token == 0 {
		h.owners++
		o.Owner = h.owners
	}
	o.call = h.now()
	if o.acquire() {
		h.asked[o.Owner] = o.call.at
	}
	h.operations = append(h.operations, o)
}

// called returns when the acquire with an owner was asked for.
func (h *History) called(owner uint64) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.asked[owner]
	return at, ok
}

// Accept notes that the service has taken the operation.
func (h *History) Accept(o *Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.accepted = h.now()
}

// End notes an operation's outcome. The first one counts.
func (h *History) End(o *Operation, outcome Outcome, token uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.end.place != 0 {
		return
	}
	o.end = h.now()
	o.Outcome = outcome
	if o.acquire() {
		o.Token = token
	}
}

// Operations returns a copy of the operations in the order in which they were asked for.
// One that has not ended is unknown.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]Operation, len(h.operations))
	for i, o := range h.operations {
		list[i] = *o
	}
	return list
}

// Count returns how many operations have each outcome.
func (h *History) Count() map[Outcome]int {
	count := map[Outcome]int{}
	for _, o := range h.Operations() {
		count[o.Outcome]++
	}
	return count
}
