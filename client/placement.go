package client

import (
	"slices"
	"time"
)

// Bounds of what shares a session (docs/CLIENT.md, section 2, Blast radius).
const (
	// maxBlocking is how many blocking acquires share a session before another is
	// opened: what one cancel or deadline can make indeterminate besides itself.
	maxBlocking = 16
	// extraPatience is how long a call waits for a session that is being dialled,
	// rather than sharing one more widely: some handshakes in a local network, and
	// little against a wait in seconds.
	extraPatience = 100 * time.Millisecond
)

// admit gives c a place, or has it wait for one. mu is held here and below.
func (b *Broker) admit(c *call, now time.Duration) {
	b.touch(c.deadline)
	l := b.lane(c)
	if l.used >= l.limit {
		c.state = callWaiting
		c.trail.line(now)
		l.waiting.push(c)
		return
	}
	l.used++
	b.place(c, now)
}

func (b *Broker) lane(c *call) *lane {
	if c.release {
		return &b.releases
	}
	return &b.acquires
}

// place puts c on a session, or parks it until one can take it.
func (b *Broker) place(c *call, now time.Duration) {
	if s := b.pick(c, now); s != nil {
		s.enqueue(c, now)
		return
	}
	c.state = callParked
	c.trail.park(now)
	b.lane(c).parked.push(c)
	b.touch(c.due(now))
	if !c.release {
		b.refuseParked(now)
	}
}

// unpark tries the parked calls of l again, in order.
func (b *Broker) unpark(l *lane, now time.Duration) {
	for c := l.parked.head; c != nil; {
		next := c.next
		if s := b.pick(c, now); s != nil {
			l.parked.remove(c)
			s.enqueue(c, now)
		}
		c = next
	}
}

// pick returns the session that c goes to, or nil while it must wait for one.
func (b *Broker) pick(c *call, now time.Duration) *session {
	if !b.serves() || now < c.notBefore {
		return nil
	}
	if c.blocking() {
		return b.pickBlocking(b.leader, now)
	}
	return b.pickKept(b.leader, now)
}

// serves says whether some session can take calls.
func (b *Broker) serves() bool { return b.leader != nil && len(b.leader.serving) > 0 }

// pickBlocking packs blocking acquires densely, so that few sessions are needed and
// extra ones run empty. Only when all are open and full does it spread them evenly,
// the kept session last.
func (b *Broker) pickBlocking(n *node, now time.Duration) *session {
	n.keepOne()
	var dense, least *session
	for _, s := range n.serving {
		if s == n.kept {
			continue
		}
		if s.blocking < maxBlocking && (dense == nil || s.blocking > dense.blocking) {
			dense = s
		}
		if least == nil || s.blocking < least.blocking {
			least = s
		}
	}
	if dense != nil {
		return dense
	}
	b.wantExtra(n, b.acquires.parked.n, now)
	if b.dialWorthWaiting(n, now) {
		return nil
	}
	if n.kept != nil && (least == nil || n.kept.blocking < least.blocking) {
		return n.kept
	}
	return least
}

// pickKept returns the session for immediate attempts and releases.
func (b *Broker) pickKept(n *node, now time.Duration) *session {
	n.keepOne()
	if n.kept != nil {
		return n.kept
	}
	b.wantExtra(n, 0, now)
	if b.dialWorthWaiting(n, now) {
		return nil
	}
	return slices.MinFunc(n.serving, func(a, b *session) int { return a.blocking - b.blocking })
}

// keepOne sees to it that the kept session is one without blocking acquires, where
// there is such a one: the kept one may be lost, or had to take some.
func (n *node) keepOne() {
	if n.kept != nil && n.kept.blocking == 0 {
		return
	}
	for _, s := range n.serving {
		if s.blocking == 0 {
			n.kept = s
			return
		}
	}
}

// dialWorthWaiting says whether a session to n is being dialled and not slow. A
// call that waits for it is looked at again when it ought to be there.
func (b *Broker) dialWorthWaiting(n *node, now time.Duration) bool {
	worth := false
	for _, sl := range n.slots {
		if sl.dialling && now < sl.since+extraPatience {
			worth = true
			b.touch(sl.since + extraPatience)
		}
	}
	return worth
}

// wantExtra dials one more session to n when those being dialled can't take what
// waits for them, up to the limit.
func (b *Broker) wantExtra(n *node, waiting int, now time.Duration) {
	dialling := 0
	for _, sl := range n.slots {
		if sl.dialling {
			dialling++
		}
	}
	if len(n.slots) >= b.cfg.MaxSessions || now < n.extraAfter || dialling*maxBlocking > waiting {
		return
	}
	b.addSlot(n, true)
}

// finish decides c: f is nil for success. Its place goes to the next in line, and
// unlock hands the outcome over.
func (b *Broker) finish(c *call, f *fault, now time.Duration) {
	l := b.lane(c)
	held := c.state != callWaiting
	b.unlink(c)
	c.state, c.fault = callDone, f
	if b.finished.tail == nil {
		b.finished.head = c
	} else {
		b.finished.tail.next = c
	}
	b.finished.tail = c
	b.settled(c)
	if !held {
		return
	}
	l.used--
	if next := l.waiting.pop(); next != nil {
		l.used++
		next.trail.place(now)
		b.place(next, now)
	}
	if p := b.acquires.parked.head; p != nil && c.blocking() && b.pick(p, now) != nil {
		b.unpark(&b.acquires, now)
	}
	if b.closing && c.release {
		b.drain()
	}
}

// settled does what an outcome that no caller waits for calls for.
func (b *Broker) settled(c *call) {
	switch c.purpose {
	case forCompensation:
		b.compensations--
		b.note(note{Event: Event{Kind: EventCompensation, Key: c.key, Node: c.node(), Took: b.clock.mono() - c.began, Err: c.error(b.clock.mono())}})
	case forClose:
		if c.fault != nil && c.fault.kind != ErrNotCurrent {
			b.unreleased++
		}
	}
}

// unlink takes c from wherever it is.
func (b *Broker) unlink(c *call) {
	switch c.state {
	case callWaiting, callParked:
		c.in.remove(c)
	case callQueued:
		c.in.remove(c)
		c.sess.left(c)
	case callSent:
		c.in.remove(c)
		c.sess.forget(c)
		c.sess.left(c)
	}
}
