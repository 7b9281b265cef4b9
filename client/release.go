package client

import (
	"context"
	"time"
)

// Release gives back the grant of key with token, which may be another process's
// (Ticket.Detach). It takes at most 5 s, reconnects and retries included, and less
// when ctx ends. Test in this order (docs/CLIENT.md, section 3):
//
//	nil                released
//	ErrNotCurrent      gone already: released before, or its lease had ended. When
//	                   an attempt of this call may have been sent before, and its
//	                   answer was lost, the error is also ErrIndeterminate: that
//	                   attempt may be what released it
//	ErrIndeterminate   it may be released, or not
//	any other          it is not released
//
// Of attempts in earlier calls only the caller knows; a ticket's own Release
// remembers them.
func (b *Broker) Release(ctx context.Context, key string, token uint64) error {
	return b.release(ctx, key, token, nil)
}

// release gives a grant back, and takes the ticket that holds it, if any, off the
// list of held ones.
func (b *Broker) release(ctx context.Context, key string, token uint64, ticket *Ticket) error {
	began := b.clock.mono()
	span := b.spans.start(ctx, spanRelease, began)
	node, err := b.tryRelease(ctx, began, trailOf(span), key, token, ticket)
	b.endRelease(span, key, token, ticket, err)
	if b.cfg.Events != nil {
		b.cfg.Events(Event{Kind: EventRelease, Key: key, Node: node, Took: b.clock.mono() - began, Err: err})
	}
	return err
}

func (b *Broker) tryRelease(ctx context.Context, began time.Duration, trail *trail, key string, token uint64, ticket *Ticket) (string, error) {
	var bad *fault
	if ticket == nil { // else it was checked by Acquire
		bad = checkKey(key)
	}
	if bad == nil && token == 0 {
		// On the wire it would be a probe.
		bad = &fault{kind: ErrNotCurrent, why: "token 0 is never granted"}
	}
	if bad != nil {
		return "", &callError{tried: "release", key: key, fault: *bad}
	}
	c := b.calls.Get().(*call)
	defer b.recycle(c)
	c.key, c.token, c.release = key, token, true
	c.began, c.deadline, c.trail = began, began+releaseTime, trail
	c.mayBeDone = ticket != nil && ticket.mayBeReleased.Load()

	b.mu.Lock()
	var end func()
	switch {
	case b.closing:
		bad = &fault{kind: ErrClosed}
	case ctx.Err() != nil:
		bad = &fault{kind: ErrCancelled, cause: ctx.Err()}
		end = b.giveUpTicket(ticket)
	default:
		end = b.giveUpTicket(ticket)
		b.admit(c, began)
	}
	b.unlock()
	if end != nil {
		end()
	}
	if bad == nil {
		b.await(ctx, c)
	} else {
		c.fault = bad
	}
	if c.fault != nil {
		return c.node(), c.error(b.clock.mono())
	}
	return c.node(), nil
}

// compensate releases a grant that no ticket holds. When too many of them wait,
// the lease's own end is the safety net. mu is held.
func (b *Broker) compensate(key string, token uint64, now time.Duration) {
	if b.compensations >= maxCompensations || b.closed {
		b.dropped++
		b.note(note{Event: Event{Kind: EventCompensationDropped, Key: key}})
		return
	}
	b.compensations++
	c := b.calls.Get().(*call)
	c.key, c.token, c.release, c.purpose = key, token, true, forCompensation
	c.began, c.deadline = now, now+releaseTime
	b.admit(c, now)
}

// releaseFault is the outcome of a release that has got no answer in its time. No
// reply is never taken for success. mu is held.
func (b *Broker) releaseFault(c *call, cause error) *fault {
	if c.maybeSent {
		return &fault{kind: ErrIndeterminate, cause: cause, why: "no answer to the release"}
	}
	if b.closed {
		return &fault{kind: ErrClosed}
	}
	return b.unsentFault(c)
}
