package client

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// read reads replies until the session ends. It never waits for a caller: an
// outcome has a place of its own in its call.
func (s *session) read() {
	b := s.b
	data := s.rest
	ready := false
	for {
		if !s.replies(data, b.clock.now()) {
			return
		}
		if !ready && s.isReady() {
			ready = true
			s.conn.SetDeadline(time.Time{})
		}
		n, err := s.conn.Read(s.buf)
		data = s.buf[:n]
		if n == 0 && err != nil {
			what := "read"
			if !ready && errors.Is(err, os.ErrDeadlineExceeded) {
				what = awaitingReady
			}
			b.mu.Lock()
			b.end(s, fmt.Errorf("%s: %w", what, err), b.clock.mono())
			b.unlock()
			return
		}
	}
}

// replies takes everything that data, read at now, completes. It returns false once
// the session has ended.
func (s *session) replies(data []byte, now instant) bool {
	b := s.b
	s.dec.Feed(data)
	for {
		// Decoded outside the lock, taken inside.
		batch := s.batch[:0]
		for len(batch) < cap(batch) {
			r, ok := s.dec.Next()
			if !ok {
				break
			}
			batch = append(batch, r)
		}
		more := len(batch) == cap(batch)
		b.mu.Lock()
		for _, r := range batch {
			s.reply(r, now)
		}
		if err := s.dec.Err(); err != nil && !more {
			s.malformed(err, now.mono)
		}
		ended := s.state == sessionEnded
		b.unlock()
		if !more {
			return !ended
		}
	}
}

// reply takes one reply, read at now. On an ended session only grants count: they
// are given back. mu is held here and below.
func (s *session) reply(r wire.Reply, now instant) {
	b := s.b
	switch {
	case s.state == sessionEnded:
		if r.Op == wire.OpAcquire {
			b.compensateStray(r, now.mono)
		}
		return
	case s.state == sessionOpening:
		s.ready(r, now.mono)
		return
	}
	switch r.Op {
	case wire.OpAcquire, wire.OpTimeout, wire.OpBusy:
		c := s.sentOwners.get(r.Owner)
		if c == nil || c.key != r.Text {
			s.unknown(r, now.mono)
			return
		}
		c.trail.answer(now.mono)
		if r.Op == wire.OpAcquire {
			b.granted(c, r.Token, now)
		} else {
			b.finish(c, replyFaults[r.Op], now.mono)
		}
	case wire.OpRelease, wire.OpNotCurrent:
		s.released(r, now.mono)
	case wire.OpLeader:
		b.leaderNamed(s, r.Text, now.mono)
	case wire.OpMoved:
		b.hint(s, r.Text)
		b.end(s, fmt.Errorf("%w, %q is", errMoved, r.Text), now.mono)
	case wire.OpError:
		s.errored(r.Text, now.mono)
	}
}

// granted decides an acquire whose A was read at now.
func (b *Broker) granted(c *call, token uint64, now instant) {
	t := c.ticket
	t.token = token
	t.start = c.sentAt
	if floor := c.sess.probe.floor; floor.mono > t.start.mono {
		t.start = floor
	}
	if c.sess.sawLeader {
		t.domain = DomainCluster
	}
	f := t.insufficient(c.budget, now)
	if now.mono > c.deadline {
		f = &fault{kind: ErrIndeterminate, why: "the grant came after the deadline; it is being given back"}
	}
	if f == nil {
		b.hold(t, now.mono)
	}
	b.finish(c, f, now.mono)
	if f != nil {
		b.compensate(c.key, token, now.mono)
	}
}

// released takes an R or N. One that answers no pending release is dropped: a slow
// server may answer two attempts.
func (s *session) released(r wire.Reply, now time.Duration) {
	if p := &s.probe; r.Token == 0 && p.sent && p.key == r.Text {
		p.floor = p.at
		p.key, p.sent = "", false
		s.b.touch(p.dueNext)
		return
	}
	for c := s.sentTokens.get(r.Token); c != nil; c = c.twin {
		if c.key == r.Text {
			f := replyFaults[r.Op]
			if f != nil && c.mayBeDone {
				f = notCurrentAgain
			}
			c.trail.answer(now)
			s.b.finish(c, f, now)
			return
		}
	}
}

// unknown ends the session: the reply matches no request on it.
func (s *session) unknown(r wire.Reply, now time.Duration) {
	s.b.end(s, fmt.Errorf("%w: a reply %q to no request", ErrProtocol, string(r.Op)), now)
	if r.Op == wire.OpAcquire {
		s.b.compensateStray(r, now)
	}
}

// malformed ends the session: its bytes are no replies.
func (s *session) malformed(err error, now time.Duration) {
	if s.state == sessionEnded {
		return
	}
	s.probeFailed()
	s.b.end(s, fmt.Errorf("%w: the server's reply is malformed: %w", ErrProtocol, err), now)
}

// errored ends the session with the server's reason.
func (s *session) errored(reason string, now time.Duration) {
	err := endedByServer(reason)
	if errors.Is(err, ErrProtocol) {
		s.probeFailed()
	}
	if errors.Is(err, ErrAuthRefused) && s.readyAt > 0 {
		// Out of place here, and no caller must take it for "nothing was sent".
		err = fmt.Errorf("%w: %q in an open session", ErrProtocol, reason)
	}
	s.b.end(s, err, now)
}

// compensateStray gives back a grant that no acquire waits for, unless it is a
// second answer that names the grant of a live ticket.
func (b *Broker) compensateStray(r wire.Reply, now time.Duration) {
	for i := range b.held {
		for t := b.held[i].head; t != nil; t = t.next {
			if t.token == r.Token && t.key == r.Text {
				return
			}
		}
	}
	b.compensate(r.Text, r.Token, now)
}
