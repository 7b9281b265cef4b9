package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Domain says what a ticket's token may be compared with.
type Domain uint8

const (
	// DomainSingleProcess: tokens of one run of one server. They go on rising when
	// it starts again, but only in practice (docs/PROTOCOL.md, section 3).
	DomainSingleProcess Domain = iota
	// DomainCluster: tokens of a cluster, which rise over restarts and leaders.
	DomainCluster
)

// String returns "cluster" or "single process".
func (d Domain) String() string {
	if d == DomainCluster {
		return "cluster"
	}
	return "single process"
}

// Ticket is one grant of one key. It ends when it is released or detached, or when
// its lease ends. It is safe for use by any number of goroutines.
type Ticket struct {
	b     *Broker
	key   string
	token uint64
	owner uint64
	// start is the latest moment at which the grant certainly had not been made
	// yet (docs/CLIENT.md, section 3).
	start  instant
	lease  uint8 // in seconds
	domain Domain
	state  atomic.Uint32 // a ticketState

	mayBeReleased atomic.Bool // some attempt of a release may have been sent without an answer

	// Guarded by the broker's lock.
	in         *ticketList // of the held ones; nil when it is not held any longer
	prev, next *Ticket
	ctx        context.Context // once somebody asked for it
	cancel     context.CancelCauseFunc
}

// ticketState is what its holder has done with a ticket.
type ticketState uint32

const (
	ticketHeld       ticketState = iota
	ticketEnded                  // a release was tried, with no certain outcome
	ticketReleased               // R
	ticketNotCurrent             // N
	ticketDetached
)

// Key returns the key that is held.
func (t *Ticket) Key() string { return t.key }

// Token returns the fencing token: greater than every token granted before it.
func (t *Ticket) Token() uint64 { return t.token }

// Owner returns the number by which the reply was matched; it gives no authority.
func (t *Ticket) Owner() uint64 { return t.owner }

// Domain says what the token may be compared with.
func (t *Ticket) Domain() Domain { return t.domain }

// Remaining returns how much of the lease is certainly left, never more than the
// server would say, and 0 once the ticket has ended.
func (t *Ticket) Remaining() time.Duration {
	if t.hasState() != ticketHeld {
		return 0
	}
	return max(t.left(t.b.clock.now()), 0)
}

func (t *Ticket) hasState() ticketState { return ticketState(t.state.Load()) }

// length is the lease as it was asked for.
func (t *Ticket) length() time.Duration { return time.Duration(t.lease) * time.Second }

// left is what is left of the lease at now.
func (t *Ticket) left(now instant) time.Duration { return t.length() - now.since(t.start) }

// insufficient is why too little of the lease is left at now to be worth a ticket,
// or nil (docs/CLIENT.md, section 2).
func (t *Ticket) insufficient(budget time.Duration, now instant) *fault {
	left := t.left(now)
	if left > 0 && left >= budget {
		return nil
	}
	why := fmt.Sprintf("%s of the lease were left, %s are needed; the grant is being given back", max(left, 0), budget)
	return &fault{kind: ErrInsufficientLease, why: why}
}

// Expired returns a channel that is closed when the ticket ends: at the end of its
// lease, at the call of Release, Detach or Close, or with the broker. After the
// machine slept through the lease's end it is closed within a second of waking.
func (t *Ticket) Expired() <-chan struct{} { return t.Context().Done() }

// Context returns a context that ends with the ticket; its deadline is the lease's
// end, and its cause is ErrNotCurrent, whichever of the two its Err is.
func (t *Ticket) Context() context.Context {
	b := t.b
	end := t.end(b.clock.now())
	b.mu.Lock()
	defer b.unlock()
	if t.ctx == nil {
		t.expireAt(b.clock.time(end))
	}
	return t.ctx
}

// end is when the lease ends on the clock that timers go by. It is counted from the
// lease's start, so that time which passes after now was read makes it no later.
func (t *Ticket) end(now instant) time.Duration {
	return min(t.start.mono, now.mono-(now.awake-t.start.awake)) + t.length()
}

// expireAt makes the context of t. mu is held.
func (t *Ticket) expireAt(end time.Time) {
	inner, cancel := context.WithCancelCause(context.Background())
	if t.hasState() != ticketHeld {
		cancel(ticketOver(t.key))
	}
	ctx, stop := context.WithDeadlineCause(inner, end, leaseEnded(t.key))
	t.ctx = ctx
	t.cancel = func(cause error) { cancel(cause); stop() }
	if t.in != nil {
		t.b.watched[t] = struct{}{}
	}
}

func leaseEnded(key string) error {
	return fmt.Errorf("%w: the lease of %q has ended", ErrNotCurrent, key)
}
func ticketOver(key string) error {
	return fmt.Errorf("%w: the ticket of %q was given up", ErrNotCurrent, key)
}

// Release gives the grant back. The ticket has ended from the call on, whatever it
// returns. Nil: released, now or by an earlier call. ErrNotCurrent: the lease had
// ended; also ErrIndeterminate when an earlier attempt of this ticket's release may
// have been what released it. ErrClosed: the ticket was detached, or the broker
// closed. Any other error: it is not known to be released, and Release may be called
// again; see Broker.Release.
func (t *Ticket) Release(ctx context.Context) error {
	switch t.hasState() {
	case ticketReleased:
		return nil
	case ticketNotCurrent:
		f := replyFaults[wire.OpNotCurrent]
		if t.mayBeReleased.Load() {
			f = notCurrentAgain
		}
		return &callError{tried: "release", key: t.key, fault: *f}
	case ticketDetached:
		return &callError{tried: "release", key: t.key, fault: fault{kind: ErrClosed, why: "the ticket was detached; Broker.Release takes its key and token"}}
	}
	err := t.b.release(ctx, t.key, t.token, t)
	if errors.Is(err, ErrIndeterminate) {
		t.mayBeReleased.Store(true)
	}
	switch {
	case err == nil:
		t.state.Store(uint32(ticketReleased))
	case errors.Is(err, ErrNotCurrent):
		t.state.Store(uint32(ticketNotCurrent))
	default:
		t.b.mu.Lock()
		if !t.b.closing && t.in == nil && t.hasState() == ticketEnded {
			t.b.hold(t, t.b.clock.mono()) // Close tries again
		}
		t.b.unlock()
	}
	return err
}

// Detach ends the ticket without a release: the broker forgets it, and key and
// token can be released from anywhere (Broker.Release).
func (t *Ticket) Detach() (key string, token uint64) {
	b := t.b
	b.mu.Lock()
	end := b.giveUpTicket(t)
	t.state.Store(uint32(ticketDetached))
	b.unlock()
	if end != nil {
		end()
	}
	return t.key, t.token
}

// Close is a best-effort release of at most 5 s, for a deferred call: nil when the
// ticket is released, was released or detached before, or its lease has ended.
// Whoever needs the result calls Release.
func (t *Ticket) Close() error {
	if t.hasState() == ticketDetached {
		return nil
	}
	err := t.Release(context.Background())
	if errors.Is(err, ErrNotCurrent) {
		return nil
	}
	return err
}

// ticketList is a list of held tickets in the order of their grants.
type ticketList struct{ head, tail *Ticket }

// hold begins to keep t for Close. mu is held here and below.
func (b *Broker) hold(t *Ticket, now time.Duration) {
	l := &b.held[t.lease]
	t.in, t.prev, t.next = l, l.tail, nil
	if l.tail == nil {
		l.head = t
	} else {
		l.tail.next = t
	}
	l.tail = t
	b.heldCount++
	b.touch(now + tick)
}

// drop ends the keeping of t and says whether it was kept.
func (b *Broker) drop(t *Ticket) bool {
	l := t.in
	if l == nil {
		return false
	}
	if t.prev == nil {
		l.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.in, t.prev, t.next = nil, nil, nil
	b.heldCount--
	return true
}

// giveUpTicket ends t, if there is one, for its holder and for Close. It returns
// what ends the ticket's context, to be called without the lock, or nil.
func (b *Broker) giveUpTicket(t *Ticket) (end func()) {
	if t == nil {
		return nil
	}
	b.drop(t)
	t.state.CompareAndSwap(uint32(ticketHeld), uint32(ticketEnded))
	if _, watched := b.watched[t]; !watched {
		return nil
	}
	return b.unwatch(t, ticketOver(t.key))
}

// unwatch returns what ends the context of t, to be called without the lock.
func (b *Broker) unwatch(t *Ticket, cause error) (end func()) {
	delete(b.watched, t)
	return func() { t.cancel(cause) }
}

// endTickets ends every held ticket for its holder, and returns what ends their
// contexts; Close releases them then.
func (b *Broker) endTickets() (ends []func()) {
	for t := range b.watched {
		ends = append(ends, b.unwatch(t, ticketOver(t.key)))
	}
	for i := range b.held {
		for t := b.held[i].head; t != nil; t = t.next {
			t.state.CompareAndSwap(uint32(ticketHeld), uint32(ticketEnded))
		}
	}
	return ends
}
