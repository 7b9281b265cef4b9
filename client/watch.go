package client

import (
	"math"
	"slices"
	"time"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// Times of the watch.
const (
	// minSweep bounds how often everything pending is looked at.
	minSweep = time.Millisecond
	// tick is how often tickets are checked against the clock that counts during
	// sleep.
	tick = time.Second
)

// watch is the goroutine that ends what has run out of time. There is no timer for
// a call: almost all are answered long before their deadline, so the watch looks
// at everything when the earliest deadline it knows of has come, which costs a call
// one comparison.
func (b *Broker) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-b.poke:
		case <-b.ctx.Done():
			return
		}
		now := b.clock.now()
		b.mu.Lock()
		if now.mono >= b.next {
			b.sweep(now)
		}
		ends := b.endExpired(now)
		next := b.next
		b.unlock()
		for _, end := range ends {
			end()
		}
		timer.Reset(max(next-b.clock.mono(), minSweep))
	}
}

// touch has the watch look at t at the latest. mu is held here and below.
func (b *Broker) touch(t time.Duration) {
	if t >= b.next {
		return
	}
	b.next = t
	if b.sweeping {
		return
	}
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// sweep does everything that is due and sets when to look next.
func (b *Broker) sweep(now instant) {
	b.sweeping, b.next = true, never
	b.sweepLane(&b.acquires, now.mono)
	b.sweepLane(&b.releases, now.mono)
	for _, n := range b.nodes {
		for _, sl := range slices.Clone(n.slots) {
			if s := sl.sess; s != nil && s.state != sessionEnded {
				b.sweepSession(s, now.mono)
			}
		}
	}
	b.sweeping = false
}

func (b *Broker) sweepLane(l *lane, now time.Duration) {
	l.waiting.each(func(c *call) { b.expireUnsent(c, now) })
	l.parked.each(func(c *call) {
		if b.expireUnsent(c, now) {
			return
		}
		if s := b.pick(c, now); s != nil {
			l.parked.remove(c)
			s.enqueue(c, now)
		}
	})
}

// expireUnsent ends c when its time is up.
func (b *Broker) expireUnsent(c *call, now time.Duration) bool {
	if now < c.deadline {
		b.touch(c.due(now))
		return false
	}
	f := b.unsentFault(c)
	if c.release {
		f = b.releaseFault(c, nil)
	}
	b.finish(c, f, now)
	return true
}

// sweepSession ends s or its calls where their time is up.
func (b *Broker) sweepSession(s *session, now time.Duration) {
	if s.writeSince > 0 && now-s.writeSince >= peerTimeout {
		b.end(s, errStalled, now)
		return
	}
	for c := s.sentAcquires.head; c != nil; c = c.next {
		if now >= c.giveUp {
			b.finish(c, &fault{kind: ErrIndeterminate, why: "no answer in time"}, now)
			b.end(s, errNeighbour, now)
			return
		}
		b.touch(c.giveUp)
	}
	if s.state == sessionRetiring && (now >= s.retireAt || s.empty()) {
		b.end(s, errRetired, now)
		return
	}
	s.acquires.each(func(c *call) { b.expireUnsent(c, now) })
	s.releases.each(func(c *call) { b.expireUnsent(c, now) })
	s.sentReleases.each(func(c *call) { b.expireAttempt(c, now) })
	if s.state == sessionServing {
		b.touch(s.askProbe(now))
	}
	if s.writeSince > 0 {
		b.touch(s.writeSince + peerTimeout)
	}
	b.sweepIdle(s, now)
	if s.state == sessionRetiring {
		b.touch(s.retireAt)
	}
}

// expireAttempt ends an attempt of a release that got no answer, and the release
// when its time is up.
func (b *Broker) expireAttempt(c *call, now time.Duration) {
	switch {
	case now < c.giveUp:
		b.touch(c.giveUp)
	case now < c.deadline:
		b.retry(c, now)
	default:
		b.finish(c, b.releaseFault(c, nil), now)
	}
}

// sweepIdle ends an extra session that nothing has used for long.
func (b *Broker) sweepIdle(s *session, now time.Duration) {
	if !s.slot.extra || s.state == sessionOpening {
		return
	}
	due := s.lastUsed + idleTime
	switch {
	case !s.empty():
		due = now + idleTime
	case now >= due:
		b.end(s, errIdle, now)
		return
	}
	b.touch(due)
}

// endExpired forgets tickets whose lease has ended, and returns what ends the contexts
// of those that somebody watches. A timer does not count while the machine sleeps, and
// may be late, so this is done each second against the clocks themselves.
func (b *Broker) endExpired(now instant) (ends []func()) {
	if b.heldCount == 0 && len(b.watched) == 0 {
		return nil
	}
	b.touch(now.mono + tick)
	if now.mono < b.nextTick {
		return nil
	}
	b.nextTick = now.mono + tick
	for t := range b.watched {
		// At the very end the context's own timer comes first, as it does nearly
		// always; by the next tick it has.
		if t.ctx.Err() != nil || t.left(now) < 0 {
			ends = append(ends, b.unwatch(t, leaseEnded(t.key)))
		}
	}
	for i := range b.held {
		for t := b.held[i].head; t != nil && t.left(now) <= 0; t = b.held[i].head {
			b.drop(t)
		}
	}
	return ends
}
