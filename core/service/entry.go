package service

import (
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// maxCommands bounds the commands of one entry: about 100 KiB with the longest
// keys. One under way is enough for whatever gathers meanwhile.
const maxCommands = 1024

// Tick is how long a cluster's time may go without an entry while a lease runs: what
// the last leader had not committed is what a lease grows by at most
// (docs/PROTOCOL.md, section 3).
const Tick = time.Second

// release is a release that goes into the next entry. One without a session is
// the service's own, of a grant that reached nobody.
type release struct {
	session *Session
	key     string
	token   uint64
	since   time.Duration // when it was parsed, or became necessary
}

// undertaken is what a command of the entry under way answers: a waiter's acquire, an
// order, or else a release, of a session or of the service's own.
type undertaken struct {
	waiter  *waiter
	done    func(lock.Result, error)
	session *Session
	since   time.Duration // a release's
}

// pump proposes up to the given number of entries, while there is something to
// propose and none is under way.
func (s *Service) pump(entries int, now time.Duration) {
	for range entries {
		if s.busy || !s.hasWork(now) {
			return
		}
		s.seal(now)
		s.busy, s.underWay = true, true
		if out, done := s.proposer.Propose(&s.entry); done {
			s.settle(out)
			s.busy = false
		}
	}
}

// hasWork says whether there is something to propose and the node may: a command, or
// time that is to be told.
func (s *Service) hasWork(now time.Duration) bool {
	if s.standing != serving {
		return false
	}
	if s.pressing() {
		return true
	}
	at, ok := s.nextEntry()
	return ok && at <= now
}

// pressing says whether the next entry is wanted at once: a command waits for it, or
// what became of a lost one is known behind it.
func (s *Service) pressing() bool {
	return len(s.releases) > 0 || s.ready.len > 0 || len(s.orders) > 0 || s.doubt
}

// nextEntry returns when an entry is due although no command waits for it: when the
// first lease ends, and in a cluster within a Tick of the last one while one runs.
func (s *Service) nextEntry() (at time.Duration, ok bool) {
	at, ok = s.proposer.NextDeadline()
	if s.clustered {
		at = min(at, s.sealed+Tick)
	}
	return at, ok
}

// gatherRelease puts a release into the next entry.
func (s *Service) gatherRelease(r release) {
	s.releases = append(s.releases, r)
	if !s.clustered {
		return
	}
	if q := s.queues[r.key]; q != nil && q.head != nil && !q.ready {
		s.bringing++
	}
}

// seal makes the next entry of what has gathered. Which waiter is granted is
// chosen here, with the outcome of everything before the entry known: so at most
// one grant of a key is under way, and it stands behind the releases of that key.
func (s *Service) seal(now time.Duration) {
	s.sealed = now
	s.entry.Elapsed = now
	s.entry.Commands = s.entry.Commands[:0]
	s.proposals = s.proposals[:0]
	s.sealOrders()
	s.sealReleases(now)
	s.sealEnded(now)
	s.sealGrants()
}

// sealReleases puts the releases into the entry. One of the current token brings
// its key's next waiter along, so that a hand-over takes one entry; a stale one
// does not.
func (s *Service) sealReleases(now time.Duration) {
	s.bringing = 0
	n := min(len(s.releases), maxCommands-len(s.entry.Commands))
	for _, r := range s.releases[:n] {
		s.entry.Commands = append(s.entry.Commands, lock.Command{Kind: lock.KindRelease, Key: r.key, Token: r.token})
		s.proposals = append(s.proposals, undertaken{session: r.session, since: r.since})
		if q := s.queues[r.key]; q != nil {
			if g, held := s.proposer.Current(r.key, now); held && g.Token == r.token {
				s.markReady(q)
			}
		}
	}
	s.releases = drop(s.releases, n)
}

// sealEnded lets the waiters go whose key's lease is ended by the entry's own time,
// oldest deadline first.
func (s *Service) sealEnded(now time.Duration) {
	for range s.grants {
		q, ok := s.behind.First()
		if !ok || q.DueAt() > now {
			return
		}
		s.markReady(q)
	}
}

// sealGrants puts a grant into the entry for the first waiter of each key that is
// ready, as many as fit.
func (s *Service) sealGrants() {
	for range min(s.ready.len, maxCommands-len(s.entry.Commands), s.grants) {
		q := s.ready.head
		s.ready.remove(q)
		s.undertake(q.head)
	}
}

// undertake puts the grant for a waiter into the entry.
func (s *Service) undertake(w *waiter) {
	q := w.queue
	s.unpark(w)
	q.unlink(w)
	w.state, w.sealed = proposed, s.sealed
	q.proposed = w
	w.session.pending++
	s.entry.Commands = append(s.entry.Commands, lock.Command{
		Kind: lock.KindGrant, Key: q.key, Owner: w.owner, Lease: w.lease, Holder: w.session.holder,
	})
	s.proposals = append(s.proposals, undertaken{waiter: w})
}

// drop removes the first n elements and keeps the slice's memory.
func drop[T any](list []T, n int) []T {
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}
