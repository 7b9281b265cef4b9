package service

import (
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// ElectedPatience is how long requests wait for an elected node to serve
// (docs/PROTOCOL.md, section 2, not_active).
const ElectedPatience = 5 * time.Second

// standing says what becomes of requests.
type standing uint8

const (
	// following: another node serves, or none that is known. Requests end their
	// sessions.
	following standing = iota
	// elected: this node leads and does not serve yet. Requests wait.
	elected
	// stalled: it has been elected for too long. Requests end their sessions.
	stalled
	// stepping: it has stopped serving and is still telling everybody. Requests wait.
	stepping
	// serving: requests are decided.
	serving
)

// The three methods that say where this node stands may be called from any goroutine,
// again and again. Each returns when every session is told.

// Follow says that this node does not serve; addr is the leader's client address,
// empty when none is known. When the node served until now, every acquire that is not
// proposed is answered Busy, and sessions with something proposed, or with a release
// that has no answer, are ended. The outcome of the entry under way is forgotten: if
// the proposer still tells it, that does nothing.
func (s *Service) Follow(addr string) {
	s.change.Lock()
	defer s.change.Unlock()
	s.stopServing(following, addr)
}

// Elected says that this node leads and does not serve yet: requests wait, up to
// ElectedPatience. When it served until now, it stops as Follow says.
func (s *Service) Elected() {
	s.change.Lock()
	defer s.change.Unlock()
	if at := s.stand(); at == elected || at == stalled || s.isRetired() {
		return
	}
	s.stopServing(elected, "")
}

// Lead says that this node serves from now on; addr is its client address.
func (s *Service) Lead(addr string) {
	s.change.Lock()
	defer s.change.Unlock()
	s.startServing(addr)
	s.announce()
}

// Retire ends serving for good: what a node that drains does last, when its leadership
// is handed over, or could not be. Sessions without an unanswered request stay, and are
// still told of a new leader by Follow. It does what Drain does, if that has not come.
func (s *Service) Retire() {
	s.Drain()
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.Lock()
	s.retired = true
	leader := s.otherLeader()
	s.mu.Unlock()
	s.stopServing(following, leader)
}

func (s *Service) stand() standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing
}

func (s *Service) isRetired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired
}

// otherLeader returns the address of the leader when that is another node.
func (s *Service) otherLeader() string {
	if s.standing == following {
		return s.leader
	}
	return ""
}

// stopServing takes the node to a standing in which it does not serve. Answers come
// before ends: a session that is ended has been told what is certain.
func (s *Service) stopServing(to standing, leader string) {
	if s.stepDown() {
		for s.refuseRound() {
		}
		for s.endRound(leader) {
		}
	}
	s.arrived(to, leader)
	s.announce()
}

// stepDown gives up what is under way, if the node serves.
func (s *Service) stepDown() bool {
	s.mu.Lock()
	defer s.unlock()
	if s.standing != serving {
		return false
	}
	s.standing = stepping
	s.forgetEntry()
	s.busy, s.doubt = false, false
	for _, r := range s.releases {
		if r.session != nil {
			s.loseRelease(r.session)
		}
	}
	s.releases, s.bringing = drop(s.releases, len(s.releases)), 0
	for _, o := range s.orders {
		s.answerOrder(o.done, lock.Result{}, ErrNotServing)
	}
	s.orders = drop(s.orders, len(s.orders))
	return true
}

// endRound ends some of the sessions that owe it.
func (s *Service) endRound(leader string) (more bool) {
	s.mu.Lock()
	defer s.unlock()
	s.endOwing(maxRound, leader)
	return len(s.owing) > 0
}

// arrived ends a change to a standing in which the node does not serve.
func (s *Service) arrived(at standing, leader string) {
	s.mu.Lock()
	defer s.unlock()
	if leader != "" && (leader != s.leader || s.standing != at) {
		s.news++
	}
	s.standing, s.leader = at, leader
	if at == elected {
		s.patience = s.now() + ElectedPatience
	}
	s.room.Broadcast()
	s.arm()
}

func (s *Service) startServing(addr string) {
	s.mu.Lock()
	defer s.unlock()
	if s.retired || s.standing == serving && s.leader == addr {
		return
	}
	now := s.now()
	if s.standing != serving {
		s.sealed = now // the entry that began the reign told the time
	}
	s.standing, s.leader = serving, addr
	s.news++
	s.room.Broadcast()
	s.pump(1, now)
	s.arm()
}

// announce tells every session of the leader that was not told yet.
func (s *Service) announce() {
	for s.announceRound() {
	}
}

func (s *Service) announceRound() (more bool) {
	s.mu.Lock()
	defer s.unlock()
	for range maxRound {
		c := s.sessions.head
		if c == nil || c.news == s.news {
			return false
		}
		s.sessions.remove(c)
		s.sessions.pushBack(c)
		c.news = s.news
		if !c.ended {
			c.sink.Leader(s.leader)
			s.touch(c)
		}
	}
	return true
}

// turnAway ends a session that this node does not serve.
func (s *Service) turnAway(c *Session, leader string) {
	switch {
	case leader != "":
		s.end(c, EndMoved, leader)
	case s.draining:
		s.end(c, EndNotActive, "")
	default:
		s.end(c, EndNoLeader, "")
	}
}

// requestKind says what a request waits for before it is decided.
type requestKind uint8

const (
	anAcquire requestKind = iota
	aRelease              // has a lane
	aProbe
)

// await waits until a request of session c, whose call this is, may be decided. It
// returns false when it never will be, since its session has ended. What the session
// was told by its earlier calls is flushed before it waits: it must not wait with it.
func (s *Service) await(c *Session, kind requestKind) bool {
	flushed := false
	for {
		switch {
		case c.closed:
			return false
		case kind == anAcquire && s.draining:
			return true // to be answered Busy, wherever the node stands
		case c.ended && (kind == anAcquire || s.standing != serving):
			return false // releases go on
		case s.standing == serving && (kind != aRelease || s.releasing < s.limits.Releases):
			return true
		case s.standing == following:
			s.turnAway(c, s.leader)
			return false
		case s.standing == stalled:
			s.end(c, EndNotActive, "")
			return false
		case !flushed:
			s.unlock()
			c.sink.Flush()
			s.lock(c)
			flushed = true
		default:
			s.caller = nil // while it waits others call
			s.room.Wait()
			s.caller = c
		}
	}
}
