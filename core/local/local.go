// Package local is the proposer of a single server in memory: an entry is applied
// where it is proposed, at once, and nothing of it outlives the process.
package local

import (
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// reign is the only one there is: a single server leads as long as it lives.
const reign = 1

// Proposer applies entries to a machine of its own. Like the machine it must not
// be used by two goroutines at once; core/service calls it under its lock.
type Proposer struct {
	machine *lock.Machine
	outcome lock.Outcome
}

// New returns a proposer whose first grant has the given token. A server passes
// its start time in Unix microseconds, so that tokens go on above those of the
// process before it (docs/PROTOCOL.md, section 3; best effort, as a clock that is
// set back breaks it).
func New(first uint64) *Proposer {
	p := &Proposer{machine: lock.New()}
	p.machine.Apply(&lock.Entry{First: max(first, 1)}, &p.outcome) // token 0 is never granted
	return p
}

// Propose applies the entry and returns what it did, which is valid until the
// next call. An entry's outcome is always known here, so it answers true.
func (p *Proposer) Propose(e *lock.Entry) (*lock.Outcome, bool) {
	e.Reign = reign
	p.machine.Apply(e, &p.outcome)
	return &p.outcome, true
}

// Current returns the grant of key that is current at the given elapsed time of
// the reign, which is the machine's time too.
func (p *Proposer) Current(key string, at time.Duration) (lock.Grant, bool) {
	g, ok := p.machine.Current(key)
	if !ok || g.Deadline <= at {
		return lock.Grant{}, false
	}
	return g, true
}

// Len returns how many keys have a grant.
func (p *Proposer) Len() int { return p.machine.Len() }

// NextDeadline returns the elapsed time of the reign at which the first lease ends.
func (p *Proposer) NextDeadline() (time.Duration, bool) { return p.machine.NextDeadline() }
