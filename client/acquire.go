package client

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Acquire takes the lock named key. It waits up to wait in the server's queue (0:
// one immediate attempt) and asks for a lease that long; both are rounded up to
// whole seconds, wait 0 to 255 s, lease 1 to 250 s. minWork is the least time that
// the caller needs: the critical work, the pauses to be expected and the commit.
// When less than it is left of the lease as Acquire returns, the grant is given back
// and the error is ErrInsufficientLease; it may be 0.
//
// An ended ctx ends the call. The package documentation says what each error means
// for the lock; docs/CLIENT.md, section 2, is the whole table.
func (b *Broker) Acquire(ctx context.Context, key string, wait, lease, minWork time.Duration) (*Ticket, error) {
	began := b.clock.mono()
	span := b.spans.start(ctx, spanAcquire, began)
	ticket, node, err := b.acquire(ctx, began, trailOf(span), key, wait, lease, minWork)
	b.endAcquire(span, key, wait, lease, ticket, err)
	if b.cfg.Events != nil {
		b.cfg.Events(Event{Kind: EventAcquire, Key: key, Node: node, Took: b.clock.mono() - began, Err: err})
	}
	return ticket, err
}

func (b *Broker) acquire(ctx context.Context, began time.Duration, trail *trail, key string, wait, lease, minWork time.Duration) (*Ticket, string, error) {
	bad := checkAcquire(key, wait, lease, minWork)
	if bad == nil && ctx.Err() != nil {
		bad = &fault{kind: ErrCancelled, cause: ctx.Err()}
	}
	if bad != nil {
		return nil, "", &callError{tried: "acquire", key: key, fault: *bad}
	}
	c := b.calls.Get().(*call)
	defer b.recycle(c)
	c.key, c.wait, c.lease, c.budget = key, uint8(seconds(wait)), uint8(seconds(lease)), minWork
	c.began, c.deadline, c.trail = began, began+time.Duration(c.wait)*time.Second, trail
	if c.wait == 0 {
		c.deadline = began + immediateTime
	}
	ticket := &Ticket{b: b, key: key, lease: c.lease}
	c.ticket = ticket

	if bad = b.submit(c); bad == nil {
		b.await(ctx, c)
	} else {
		c.fault = bad
	}
	if c.fault == nil {
		b.lastLook(ctx, c)
	}
	if c.fault != nil {
		return nil, c.node(), c.error(b.clock.mono())
	}
	return ticket, c.node(), nil
}

// submit admits an acquire, or says why not.
func (b *Broker) submit(c *call) *fault {
	b.mu.Lock()
	defer b.unlock()
	if b.closing {
		return &fault{kind: ErrClosed}
	}
	if b.owner == math.MaxUint64 {
		return &fault{kind: ErrClientCapacity, why: "this broker has used up its request numbers; make a new one"}
	}
	b.owner++
	c.owner, c.ticket.owner = b.owner, b.owner
	if c.trail != nil {
		c.trail.owner = b.owner
	}
	b.admit(c, c.began)
	return nil
}

// await returns once c has its outcome, which is a cancel when ctx ends first.
func (b *Broker) await(ctx context.Context, c *call) {
	if ctx.Done() == nil {
		<-c.done
		return
	}
	select {
	case <-c.done:
		return
	case <-ctx.Done():
	}
	b.mu.Lock()
	b.cancel(c, ctx.Err())
	b.unlock()
	<-c.done
}

// cancel ends c for its caller, unless it is decided already. A cancelled acquire
// that may have been sent takes its session with it, since only that ends the
// server's waiter. mu is held.
func (b *Broker) cancel(c *call, cause error) {
	now := b.clock.mono()
	switch {
	case c.state == callDone:
	case c.release:
		f := &fault{kind: ErrCancelled, cause: cause}
		if c.maybeSent {
			f = &fault{kind: ErrIndeterminate, cause: cause, why: "cancelled before the answer"}
		}
		b.finish(c, f, now)
	case c.state == callSent:
		s := c.sess
		b.finish(c, &fault{kind: ErrIndeterminate, cause: cause, why: "cancelled before the answer"}, now)
		b.end(s, errNeighbour, now)
	default:
		b.finish(c, &fault{kind: ErrCancelled, cause: cause}, now)
	}
}

// lastLook checks a grant once more, right before its caller gets it: since it was
// read the caller may have cancelled, or the process may have been stopped for long.
func (b *Broker) lastLook(ctx context.Context, c *call) {
	if cause := ctx.Err(); cause != nil {
		// The session is closed, and the exact token is released on another.
		b.revoke(c, &fault{kind: ErrIndeterminate, cause: cause, why: "cancelled while the grant came; it is being given back"}, true)
		return
	}
	if f := c.ticket.insufficient(c.budget, b.clock.recent()); f != nil {
		b.revoke(c, f, false)
	}
}

// revoke makes a grant that was held already the failure f, and gives it back.
func (b *Broker) revoke(c *call, f *fault, endSession bool) {
	b.mu.Lock()
	defer b.unlock()
	now := b.clock.mono()
	c.fault = f
	if endSession {
		b.end(c.sess, errNeighbour, now)
	}
	// Not held any longer: its lease has just ended, or Close is releasing it already.
	if b.drop(c.ticket) || !b.closing {
		b.compensate(c.key, c.ticket.token, now)
	}
}

// checkAcquire applies the rules of docs/CLIENT.md, section 1: nothing is clamped.
func checkAcquire(key string, wait, lease, minWork time.Duration) *fault {
	if f := checkKey(key); f != nil {
		return f
	}
	unsupported := func(why string) *fault { return &fault{kind: ErrUnsupportedDuration, why: why} }
	switch {
	case wait < 0 || wait > wire.MaxWait*time.Second:
		return unsupported("the wait " + wait.String() + " is not 0 to 255 s")
	case lease <= 0 || lease > wire.MaxLease*time.Second:
		return unsupported("the lease " + lease.String() + " is not above 0 and up to 250 s")
	case minWork < 0 || minWork > wire.MaxLease*time.Second:
		return unsupported("the work budget " + minWork.String() + " is not 0 to 250 s")
	case seconds(minWork) > seconds(lease):
		return &fault{kind: ErrInsufficientLease, why: "the work budget " + minWork.String() + " is above the lease " + lease.String()}
	}
	return nil
}

// checkKey refuses what the server would, and a carriage return on top.
func checkKey(key string) *fault {
	if !wire.ValidKey(key) || strings.IndexByte(key, '\r') >= 0 {
		return &fault{kind: ErrInvalidKey, why: "a key is 1 to 128 bytes of UTF-8 without spaces and line breaks"}
	}
	return nil
}

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int64 {
	whole := d / time.Second
	if d%time.Second > 0 {
		whole++
	}
	return int64(whole)
}
