package client

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

const (
	// maxWrite bounds one write, in bytes: some hundred requests.
	maxWrite = 32 << 10
	// maxYields bounds how often the writer lets others go first.
	maxYields = 4
)

// write is the goroutine that writes. It is woken by the first caller, lets the
// others that are about to call go first, and takes what has gathered into one
// system call.
func (s *session) write() {
	b := s.b
	buf := make([]byte, 0, maxWrite+wire.MaxFrame)
	for {
		select {
		case <-s.wake:
		case <-s.stop:
			return
		}
		for {
			s.gather()
			now := b.clock.recent() // the lease starts no later than this
			b.mu.Lock()
			buf = s.take(buf[:0], now)
			b.unlock()
			if len(buf) == 0 {
				break
			}
			if _, err := s.conn.Write(buf); err != nil {
				b.mu.Lock()
				b.end(s, fmt.Errorf("write: %w", err), b.clock.mono())
				b.unlock()
				return
			}
			s.wrote(now.mono)
		}
	}
}

// gather yields to the callers that are about to call, as long as more of them come.
func (s *session) gather() {
	for range maxYields {
		before := s.unsent()
		runtime.Gosched()
		if s.unsent() == before {
			return
		}
	}
}

func (s *session) unsent() int {
	s.b.mu.Lock()
	defer s.b.unlock()
	return s.releases.n + s.acquires.n
}

// take moves what is to be sent into buf: releases first, then acquires. From here
// on it may have been sent; whoever was cancelled before certainly was not. mu is
// held; now was read before it was taken, and is the moment before the write.
func (s *session) take(buf []byte, now instant) []byte {
	if s.state == sessionEnded {
		return buf
	}
	buf = s.takeProbe(buf, now)
	for c := s.releases.head; c != nil && len(buf) < maxWrite; c = s.releases.head {
		s.releases.remove(c)
		s.send(c, now, min(now.mono+releaseAttempt, c.deadline))
		buf = wire.Request{Op: wire.OpRelease, Token: c.token, Key: c.key}.Append(buf)
	}
	for c := s.acquires.head; c != nil && len(buf) < maxWrite; c = s.acquires.head {
		left := c.deadline - now.mono
		if left <= 0 {
			s.b.finish(c, s.b.unsentFault(c), now.mono)
			continue
		}
		var wait uint8
		if c.wait > 0 {
			wait = uint8(seconds(left))
		}
		s.acquires.remove(c)
		s.send(c, now, s.b.giveUp(c.deadline, now.mono+time.Duration(wait)*time.Second))
		buf = wire.Request{Op: wire.OpAcquire, Wait: wait, Lease: c.lease, Owner: c.owner, Key: c.key}.Append(buf)
	}
	s.writeSince = 0
	if len(buf) == 0 {
		s.writing = false
		return buf
	}
	s.writeSince, s.lastUsed = now.mono, now.mono
	s.b.touch(now.mono + peerTimeout)
	return buf
}

// send marks c as one that may have been sent.
func (s *session) send(c *call, now instant, giveUp time.Duration) {
	c.state, c.sentAt, c.giveUp = callSent, now, giveUp
	s.remember(c)
	if c.release {
		c.mayBeDone = c.mayBeDone || c.maybeSent
		c.maybeSent = true
	}
	if c.trail != nil {
		c.trail.send(now.mono)
		s.traced = append(s.traced, c.trail)
	}
	s.b.touch(giveUp)
	if c.blocking() {
		s.b.touch(now.mono + probePause)
	}
}

// wrote tells the calls that are traced that the write that began at sent has ended.
func (s *session) wrote(sent time.Duration) {
	if len(s.traced) == 0 {
		return
	}
	now := s.b.clock.mono()
	s.b.mu.Lock()
	for _, t := range s.traced {
		t.wrote(sent, now)
	}
	s.b.unlock()
	clear(s.traced)
	s.traced = s.traced[:0]
}

// giveUp is when the session of an acquire that was sent is closed for want of an
// answer: the server's own T comes when its wait has run out, and needs its way.
func (b *Broker) giveUp(deadline, serverDone time.Duration) time.Duration {
	grace := *b.cfg.ReplyGrace
	if grace == 0 {
		return deadline
	}
	return max(deadline, serverDone) + grace
}
