package service

import (
	"sync/atomic"
	"time"
)

// Outcome says how a request was decided.
type Outcome uint8

const (
	// Granted: the key is granted by the token in the answer.
	Granted Outcome = iota + 1
	// TimedOut: certainly not granted. The wait ran out, or an immediate attempt
	// found the key taken.
	TimedOut
	// Busy: certainly not granted, for want of capacity or because the node stops
	// serving.
	Busy
	// Released: the grant has ended by this release.
	Released
	// NotCurrent: the token is not the key's current one. Nothing happened.
	NotCurrent
)

// Answer is what a session is told of one request.
type Answer struct {
	Outcome Outcome
	Key     string
	Token   uint64 // Granted, Released, NotCurrent
	Owner   uint64 // Granted, TimedOut, Busy: as the acquire gave it
	// Sent is to be called once the answer has been written, or never will be; nil for
	// nobody. It neither blocks nor calls the service.
	Sent func()
}

// Sink takes the answers of one session. It is implemented by a connection.
type Sink interface {
	// Deliver queues an answer. It is called with the service's lock held, so it
	// must neither block nor call the service.
	Deliver(Answer)
	// Flush sends what was delivered. It is called without the lock, once for any
	// number of answers, by whichever goroutine caused them; it must not wait for
	// the peer. Answers to a session's own call are flushed by the caller, after
	// the last of its calls. A Flush may still come after Leave has returned.
	Flush()
	// Leader tells the session the leader's client address, empty for a single
	// server: the first time as the ready frame, then at each change
	// (docs/PROTOCOL.md, section 1). It is called like Deliver, and its frame
	// stands in one order with the answers.
	Leader(addr string)
	// End ends the session once what was delivered is sent. It is called with the
	// lock held, at most once; addr is the leader's with EndMoved.
	End(reason EndReason, addr string)
}

// EndReason says why the service ends a session.
type EndReason uint8

const (
	// EndMoved: this node does not serve, another one does.
	EndMoved EndReason = iota + 1
	// EndNoLeader: this node does not serve and knows none that does.
	EndNoLeader
	// EndNotActive: this node can't serve the request: it drains, it leads and does
	// not serve yet, or its tokens are used up.
	EndNotActive
)

// Session is one connection's place in the service: its waiters leave with it.
type Session struct {
	sink    Sink
	holder  string       // who holds what it is granted, for people
	first   *waiter      // its waiters, in no particular order
	ended   bool         // its sink was told End; what it still asks but releases is dropped
	closed  bool         // it has left
	dirty   bool         // in Service.dirty
	owing   bool         // in Service.owing
	pending int          // its grants that are under way
	probes  atomic.Int32 // its probes that are held back by them

	prev, next *Session // in Service.sessions
	news       uint64   // Service.news when it was told last
}

// HeldProbes returns how many answers to probes are held back by grants that are
// under way. It takes no lock.
func (c *Session) HeldProbes() int { return int(c.probes.Load()) }

// Open begins a session whose answers go to sink. Leave must end it. The holder is
// who holds what it is granted, for people; at most lock.MaxHolder bytes. When a
// leader is known, Open tells the session; the caller flushes that.
func (s *Service) Open(sink Sink, holder string) *Session {
	c := &Session{sink: sink, holder: holder}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.news = s.news
	s.sessions.pushBack(c)
	switch {
	case !s.clustered:
		sink.Leader("")
	case s.leader != "" && (s.standing == serving || s.standing == following):
		sink.Leader(s.leader)
	}
	return c
}

// Leave ends a session: its waiters leave their queues without an answer, and a
// grant of it that is under way is released as soon as it is made. Nothing is
// delivered to it after Leave has returned. What it holds stays held: a lease
// ends by its release or its time alone.
func (s *Service) Leave(c *Session) {
	for s.leaveRound(c) {
	}
}

// leaveRound takes some of the session's waiters out: it can have every waiter
// there is, and others get their turn.
func (s *Service) leaveRound(c *Session) (more bool) {
	s.mu.Lock()
	defer s.unlock()
	if !c.closed {
		c.closed = true
		s.sessions.remove(c)
		s.room.Broadcast() // its reader may wait
	}
	for range maxRound {
		w := c.first
		if w == nil {
			return false
		}
		c.remove(w)
		if w.state != proposed {
			s.decided(w, 0, AcquireGone, 0)
			s.withdraw(w)
		}
	}
	return c.first != nil
}

// sessionList lists sessions.
type sessionList struct{ head, tail *Session }

func (l *sessionList) pushBack(c *Session) {
	c.prev, c.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *sessionList) remove(c *Session) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.tail = c.prev
	}
	c.prev, c.next = nil, nil
}

func (c *Session) add(w *waiter) {
	w.sessionNext = c.first
	if c.first != nil {
		c.first.sessionPrev = w
	}
	c.first = w
}

func (c *Session) remove(w *waiter) {
	if w.sessionPrev != nil {
		w.sessionPrev.sessionNext = w.sessionNext
	} else if c.first == w {
		c.first = w.sessionNext
	}
	if w.sessionNext != nil {
		w.sessionNext.sessionPrev = w.sessionPrev
	}
	w.sessionPrev, w.sessionNext = nil, nil
}

// deliver hands an answer to the session and notes that it is to be flushed.
func (s *Service) deliver(c *Session, a Answer) {
	if c.closed {
		if a.Sent != nil {
			a.Sent()
		}
		return
	}
	c.sink.Deliver(a)
	s.touch(c)
}

// end ends a session with what was delivered to it. Its waiters stay until it leaves.
func (s *Service) end(c *Session, reason EndReason, addr string) {
	if c.closed || c.ended {
		return
	}
	c.ended = true
	c.sink.End(reason, addr)
	s.touch(c)
	s.room.Broadcast() // its reader may wait
}

// touch notes that the session is to be flushed when the lock is given back.
func (s *Service) touch(c *Session) {
	if !c.dirty && c != s.caller {
		c.dirty = true
		s.dirty = append(s.dirty, c)
	}
}

// lock takes the lock for a call of session c, which flushes its own answers.
func (s *Service) lock(c *Session) (now time.Duration) {
	s.mu.Lock()
	s.caller = c
	return s.now()
}

// unlock ends a call: the lock is given back, then the sessions that were told
// something are flushed.
func (s *Service) unlock() {
	s.caller = nil
	s.updateGates()
	if s.clustered {
		s.gathered.Store(int64(len(s.orders) + len(s.releases) + s.bringing + s.ready.len))
	}
	dirty, called := s.dirty, s.called
	s.dirty, s.called = nil, nil
	for _, c := range dirty {
		c.dirty = false
	}
	s.mu.Unlock()
	for _, c := range dirty {
		c.sink.Flush()
	}
	for _, f := range called {
		f()
	}
}
