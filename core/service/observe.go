package service

import (
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// at returns when a time of the service was.
func (s *Service) at(t time.Duration) time.Time { return s.start.Add(t) }

// observeTurnedAway reports an acquire of a session that the node does not serve.
func (s *Service) observeTurnedAway(c *Session, a Acquire, asked time.Duration) {
	result := AcquireTurnedAway
	if c.closed {
		result = AcquireGone
	}
	if sent := s.observeArrival(a, result, 0, asked); sent != nil {
		sent()
	}
}

// observeArrival reports an acquire that never joined a queue.
func (s *Service) observeArrival(a Acquire, result AcquireResult, why Refusal, asked time.Duration) (sent func()) {
	if s.observer == nil {
		return nil
	}
	return s.observer.AcquireDecided(AcquireEvent{
		Key: a.Key, Owner: a.Owner, Result: result, Refused: why, Wait: a.Wait, Lease: a.Lease,
		At: s.at(asked), Waited: s.now() - asked,
	})
}

// decided reports the end of an acquire that gets no answer.
func (s *Service) decided(w *waiter, token uint64, result AcquireResult, why Refusal) {
	if sent := s.observeAcquire(w, token, result, why); sent != nil {
		sent()
	}
}

// observeAcquire reports the end of an acquire that was in a queue: each one comes by here
// once.
func (s *Service) observeAcquire(w *waiter, token uint64, result AcquireResult, why Refusal) (sent func()) {
	s.arrivals.remove(w)
	if s.observer == nil {
		return nil
	}
	q, now := w.queue, s.settledAt
	if token == 0 { // else an entry granted it, which is being settled
		now = s.now()
	}
	e := AcquireEvent{
		Key: q.key, Owner: w.owner, Result: result, Refused: why, Token: token,
		Wait: w.until - w.since, Lease: w.lease,
		At: s.at(w.asked), Waited: now - w.asked, Position: w.position,
	}
	if w.sealed != 0 {
		e.Proposed = w.sealed - w.asked
	}
	if token != 0 {
		e.Freed, e.Entry = q.freed, s.settled
		if q.freed.At.Before(e.At) {
			e.Freed = End{} // it did not wait for that
		}
		q.freed = End{}
	}
	return s.observer.AcquireDecided(e)
}

// observeRelease reports the end of a release and returns the end of the grant, if it was
// that.
func (s *Service) observeRelease(u *undertaken, cmd *lock.Command, r lock.Result) End {
	if s.observer == nil {
		return End{}
	}
	e := ReleaseEvent{
		Key: cmd.Key, Current: r.Status == lock.Released,
		End: End{Token: cmd.Token, At: s.at(s.settledAt), Took: s.settledAt - u.since, Held: r.Held, Entry: s.settled},
	}
	s.observer.ReleaseDecided(e)
	return e.End
}

// observeEnded reports a grant whose lease had run out by a time of the machine.
func (s *Service) observeEnded(g *lock.Grant, now time.Duration) End {
	if s.observer == nil {
		return End{}
	}
	lag := now - g.Deadline
	e := LeaseEvent{Key: g.Key, End: End{
		Token: g.Token, Owner: g.Owner, Expired: true, At: s.at(s.settledAt),
		Held: g.Lease + lag, Lag: lag, Entry: s.settled,
	}}
	s.observer.LeaseEnded(e)
	return e.End
}
