package service

import (
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// settle answers what the entry under way decided.
func (s *Service) settle(out *lock.Outcome) {
	s.underWay = false
	if s.observer != nil {
		s.settled = EntryInfo{Index: out.Index, Term: out.Term, Commands: len(s.entry.Commands)}
		s.settledAt = s.now() // once for all that the entry decides
	}
	for i := range out.Ended {
		s.settleEnded(&out.Ended[i], out.Now)
	}
	for i, r := range out.Results {
		u := &s.proposals[i]
		switch {
		case u.waiter != nil:
			s.settleAcquire(u.waiter, r)
		case u.done != nil:
			s.answerOrder(u.done, r, nil)
		default:
			s.settleRelease(u, &s.entry.Commands[i], r)
		}
	}
	s.answerProbes()
	s.resolveDoubt()
}

// settleEnded lets the next waiter of a key go whose lease has run out.
func (s *Service) settleEnded(g *lock.Grant, now time.Duration) {
	s.free(g.Key, s.observeEnded(g, now))
}

// free notes that a key has no grant any more, and how the last one ended.
func (s *Service) free(key string, end End) {
	if q := s.queues[key]; q != nil {
		q.freed = end
		s.setHeld(q, false)
		s.markReady(q)
	}
}

func (s *Service) settleRelease(u *undertaken, cmd *lock.Command, r lock.Result) {
	c, outcome := u.session, NotCurrent
	end := s.observeRelease(u, cmd, r)
	if r.Status == lock.Released {
		outcome = Released
		s.free(cmd.Key, end)
	}
	if c == nil {
		return
	}
	if s.releasing == s.limits.Releases {
		s.room.Broadcast()
	}
	s.releasing--
	s.deliver(c, Answer{Outcome: outcome, Key: cmd.Key, Token: cmd.Token})
}

func (s *Service) settleAcquire(w *waiter, r lock.Result) {
	q := w.queue
	q.proposed = nil
	w.session.pending--
	s.leaveLane(w)
	switch r.Status {
	case lock.Granted:
		s.setHeld(q, true)
		s.handOver(w, r.Token)
		if q.head != nil {
			s.waitBehind(q, r.Token, s.entry.Elapsed+w.lease)
		}
	case lock.Held:
		// Somebody else's grant came first, and stands until it is released or ends.
		s.putBack(w)
		s.resume(q)
	case lock.Exhausted:
		w.session.remove(w)
		s.decided(w, 0, AcquireExhausted, 0)
		s.end(w.session, EndNotActive, "")
		s.markReady(q) // those behind it are told the same
	case lock.Quiet:
		w.session.remove(w)
		s.answerAcquire(w, Answer{Outcome: Busy, Key: q.key, Owner: w.owner}, RefusedQuiet)
		s.markReady(q) // those behind it are told the same
	}
	s.forget(q)
}

// resume finds out anew what the first waiter of a key waits for, when outcomes do not
// tell: the end of the grant that the key has, or the next entry.
func (s *Service) resume(q *queue) {
	g, held := s.proposer.Current(q.key, s.entry.Elapsed)
	s.setHeld(q, held)
	if q.head == nil || q.ready || q.proposed != nil {
		return
	}
	s.behind.Remove(q)
	if held {
		s.waitBehind(q, g.Token, g.Deadline)
	} else {
		s.markReady(q)
	}
}

// handOver delivers a grant, or gives it back at once when its session has ended.
func (s *Service) handOver(w *waiter, token uint64) {
	if w.session.closed {
		s.releases = append(s.releases, release{key: w.queue.key, token: token, since: s.now()})
		s.decided(w, token, AcquireGone, 0)
		return
	}
	w.session.remove(w)
	s.answerAcquire(w, Answer{Outcome: Granted, Key: w.queue.key, Token: token, Owner: w.owner}, 0)
}

// putBack returns a waiter whose grant was refused to the head of its queue,
// unless nobody waits for it any more.
func (s *Service) putBack(w *waiter) {
	q := w.queue
	switch {
	case w.session.closed:
		s.decided(w, 0, AcquireGone, 0)
	case w.until <= s.now() || s.draining: // an immediate attempt's wait ended when it came
		outcome, why := TimedOut, Refusal(0)
		if s.draining {
			outcome, why = Busy, RefusedDraining
		}
		w.session.remove(w)
		s.answerAcquire(w, Answer{Outcome: outcome, Key: q.key, Owner: w.owner}, why)
	default:
		q.pushFront(w)
		s.setParked(w)
	}
}

// answerAcquire reports and delivers the end of an acquire.
func (s *Service) answerAcquire(w *waiter, a Answer, why Refusal) {
	a.Sent = s.observeAcquire(w, a.Token, acquireResults[a.Outcome], why)
	s.deliver(w.session, a)
}
