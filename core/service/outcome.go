package service

import "github.com/ticketing-io/ticketing/core/lock"

// What a proposer that does not apply entries at once tells of the one under way:
// Applied, Lost or Refused, then Next. What it tells when no entry is under way is
// ignored, as the service has forgotten that entry then.

// Applied takes the outcome of the entry under way. Those that it answers are told.
// The next entry is sealed by Next.
func (s *Service) Applied(out *lock.Outcome) {
	s.mu.Lock()
	defer s.unlock()
	if !s.underWay {
		return
	}
	s.settle(out)
	s.arm()
}

// Lost says that the outcome of the entry under way is unknown: it may have been
// applied, and may be yet. Sessions with something in it are ended; all others go on.
func (s *Service) Lost() {
	s.mu.Lock()
	defer s.unlock()
	if !s.underWay {
		return
	}
	s.releases = append(s.releases, s.ownReleases()...) // once more does no harm
	s.forgetEntry()
	s.doubt = true
	s.endOwing(len(s.owing), s.otherLeader())
	s.arm()
}

// Refused says that the entry under way was certainly not proposed. Its acquires are
// answered Busy, and the sessions of its releases, which have no such answer, are
// ended.
func (s *Service) Refused() {
	s.mu.Lock()
	defer s.unlock()
	if !s.underWay {
		return
	}
	s.underWay = false
	s.releases = append(s.releases, s.ownReleases()...)
	for i := range s.proposals {
		u := &s.proposals[i]
		switch {
		case u.waiter != nil:
			s.refuseProposed(u.waiter)
		case u.done != nil:
			s.answerOrder(u.done, lock.Result{}, ErrNotServing)
		case u.session != nil:
			s.loseRelease(u.session)
		}
	}
	s.answerProbes()
	s.endOwing(len(s.owing), s.otherLeader())
	s.arm()
}

// Next lets the next entry be sealed, at once if something waits for it.
func (s *Service) Next() {
	s.mu.Lock()
	defer s.unlock()
	if s.underWay {
		return
	}
	s.busy = false
	s.pump(1, s.now())
	s.arm()
}

// Gathered returns how many commands wait for the next entry, about: a release that
// will bring a waiter along counts as two. It takes no lock.
func (s *Service) Gathered() int { return int(s.gathered.Load()) }

// ownReleases returns the releases in the entry under way that no session asked for.
func (s *Service) ownReleases() (own []release) {
	for i, u := range s.proposals {
		if c := &s.entry.Commands[i]; c.Kind == lock.KindRelease && u.session == nil {
			own = append(own, release{key: c.Key, token: c.Token, since: u.since})
		}
	}
	return own
}

// forgetEntry gives up the outcome of the entry under way. Sessions with something in
// it owe their end.
func (s *Service) forgetEntry() {
	if !s.underWay {
		return
	}
	s.underWay = false
	for i := range s.proposals {
		u := &s.proposals[i]
		switch {
		case u.waiter != nil:
			s.loseAcquire(u.waiter)
		case u.done != nil:
			s.answerOrder(u.done, lock.Result{}, ErrUnknown)
		case u.session != nil:
			s.loseRelease(u.session)
		}
	}
	s.dropProbes() // of sessions that are ended: each has a grant in the entry
}

// loseAcquire gives up an acquire that is under way.
func (s *Service) loseAcquire(w *waiter) {
	s.takeBack(w)
	w.session.remove(w)
	result := AcquireUnknown
	if w.session.closed {
		result = AcquireGone
	}
	s.decided(w, 0, result, 0)
	s.owe(w.session)
	if s.standing == serving {
		s.resume(w.queue)
	}
	s.forget(w.queue)
}

// refuseProposed answers an acquire whose grant was certainly not proposed.
func (s *Service) refuseProposed(w *waiter) {
	s.takeBack(w)
	if w.session.closed {
		s.decided(w, 0, AcquireGone, 0)
	} else {
		w.session.remove(w)
		s.answerAcquire(w, Answer{Outcome: Busy, Key: w.queue.key, Owner: w.owner}, RefusedNotProposed)
	}
	s.resume(w.queue)
	s.forget(w.queue)
}

// takeBack ends what an acquire under way is counted by.
func (s *Service) takeBack(w *waiter) {
	w.queue.proposed = nil
	w.session.pending--
	s.leaveLane(w)
}

// loseRelease gives up a release that gets no answer any more.
func (s *Service) loseRelease(c *Session) {
	s.releasing--
	s.room.Broadcast()
	s.owe(c)
}

// owe notes that a session is to be ended: the outcome of something that it asked is
// unknown.
func (s *Service) owe(c *Session) {
	if !c.owing && !c.closed && !c.ended {
		c.owing = true
		s.owing = append(s.owing, c)
	}
}

// endOwing ends up to n sessions that owe their end.
func (s *Service) endOwing(n int, leader string) {
	n = min(n, len(s.owing))
	for _, c := range s.owing[:n] {
		c.owing = false
		s.turnAway(c, leader)
	}
	s.owing = drop(s.owing, n)
}

// resolveDoubt looks again at every key, once an entry is applied behind one whose
// outcome was lost: what became of that is in the table by now, or never will be. Such
// an entry is sealed at once, if need be without a command.
func (s *Service) resolveDoubt() {
	if !s.doubt {
		return
	}
	s.doubt = false
	for _, q := range s.queues {
		s.resume(q)
	}
}
