package client

import (
	"fmt"
	"slices"
	"time"
)

// closeTime bounds the releases of Close, as every release is bounded.
const closeTime = releaseTime

// Close releases what is still held, as far as that is done in 5 s, closes every
// session and returns when no goroutine of the broker is left. Acquires under way
// return ErrClosed, or ErrIndeterminate when they may have been sent. Its error
// says how many tickets could not be released; their leases' end frees them.
func (b *Broker) Close() error {
	b.mu.Lock()
	first := !b.closing
	b.closing = true
	b.unlock()
	if first {
		b.close()
		close(b.gone)
	}
	<-b.gone
	return b.closeErr
}

func (b *Broker) close() {
	b.mu.Lock()
	b.signal()
	b.closeAcquires()
	ends := b.endTickets()
	b.drain()
	b.unlock()
	for _, end := range ends {
		end()
	}

	timer := time.NewTimer(closeTime)
	select {
	case <-b.drained:
	case <-timer.C:
	}
	timer.Stop()

	b.mu.Lock()
	b.closed = true
	b.closeReleases()
	for _, n := range b.nodes {
		for _, sl := range slices.Clone(n.slots) {
			if sl.sess != nil {
				b.end(sl.sess, errBrokerClosed, b.clock.mono())
			}
		}
	}
	if left := b.unreleased + b.heldCount; left > 0 {
		b.closeErr = fmt.Errorf("close: %d tickets could not be released; the end of their leases frees them", left)
	}
	b.unlock()

	b.stop()
	b.wg.Wait()

	b.mu.Lock()
	b.silent = true
	b.mu.Unlock()
	close(b.notes)
	b.reporting.Wait()
}

// closeAcquires ends every acquire: the unsent ones are certainly not acquired.
// Sessions on which acquires wait are closed, which ends the server's waiters; the
// others stay for the releases.
func (b *Broker) closeAcquires() {
	now := b.clock.mono()
	for b.acquires.waiting.head != nil {
		b.finish(b.acquires.waiting.head, &fault{kind: ErrClosed}, now)
	}
	for b.acquires.parked.head != nil {
		b.finish(b.acquires.parked.head, &fault{kind: ErrClosed}, now)
	}
	for _, n := range b.nodes {
		for _, sl := range slices.Clone(n.slots) {
			s := sl.sess
			if s == nil {
				continue
			}
			for s.acquires.head != nil {
				b.finish(s.acquires.head, &fault{kind: ErrClosed}, now)
			}
			if s.sentAcquires.n > 0 {
				b.end(s, errBrokerClosed, now)
			}
		}
	}
}

// drain fills the releases' places with tickets that are still held; finish calls
// it again for each place that gets free.
func (b *Broker) drain() {
	if b.closed {
		return
	}
	now := b.clock.mono()
	for i := range b.held {
		for t := b.held[i].head; t != nil; t = b.held[i].head {
			if b.releases.used >= b.releases.limit {
				return
			}
			b.drop(t)
			c := b.calls.Get().(*call)
			c.key, c.token, c.release, c.purpose = t.key, t.token, true, forClose
			c.began, c.deadline = now, now+closeTime
			b.admit(c, now)
		}
	}
	if b.releases.used == 0 && !b.isDrained {
		b.isDrained = true
		close(b.drained)
	}
}

// closeReleases ends the releases that Close has not waited for.
func (b *Broker) closeReleases() {
	now := b.clock.mono()
	end := func(c *call) { b.finish(c, b.releaseFault(c, errBrokerClosed), now) }
	for b.releases.waiting.head != nil {
		end(b.releases.waiting.head)
	}
	for b.releases.parked.head != nil {
		end(b.releases.parked.head)
	}
	for _, n := range b.nodes {
		for _, sl := range n.slots {
			if sl.sess == nil {
				continue
			}
			for sl.sess.releases.head != nil {
				end(sl.sess.releases.head)
			}
			for sl.sess.sentReleases.head != nil {
				end(sl.sess.sentReleases.head)
			}
		}
	}
}
