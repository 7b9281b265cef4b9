package service

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/due"
	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/wire"
)

// maxRound bounds how many waiters are answered, or grants proposed, while the
// lock is held once: some hundred microseconds, after which others get their turn.
const maxRound = 256

// Proposer takes entries to the machine. Its methods are called with the
// service's lock held. Times are elapsed times of the service (see Service.Now).
type Proposer interface {
	// Propose takes one entry, which is the service's again when Propose returns.
	// It answers the outcome and true when the entry was applied at once.
	// Otherwise it answers false, and another goroutine tells the outcome by
	// Service.Applied, Lost or Refused and then calls Service.Next, unless
	// Follow or Elected comes before. The service never has two entries under way.
	Propose(e *lock.Entry) (out *lock.Outcome, done bool)
	// Current returns the grant that the key has at the given time, unless an entry
	// under way changes that. Its deadline is a time of the service.
	Current(key string, at time.Duration) (lock.Grant, bool)
	// Len returns how many keys have a grant.
	Len() int
	// NextDeadline returns when the first lease ends.
	NextDeadline() (at time.Duration, ok bool)
}

// Limits bounds what the service takes on (docs/PROTOCOL.md, section 4).
type Limits struct {
	WaitersPerKey int // waiters of one key
	Waiters       int // waiters in all
	Keys          int // active keys
	Acquires      int // acquires in flight
	Releases      int // releases in flight
}

// DefaultLimits returns the limits of a single server that is told no others.
func DefaultLimits() Limits {
	return Limits{
		WaitersPerKey: wire.DefaultWaitersPerKey,
		Waiters:       wire.DefaultWaiters,
		Keys:          wire.MaxKeysSingle,
		Acquires:      wire.MaxAcquiresInFlight,
		Releases:      wire.MaxReleasesInFlight,
	}
}

// Service decides requests. Its methods may be called from any goroutine.
type Service struct {
	limits    Limits
	proposer  Proposer
	observer  Observer // may be nil
	clustered bool
	grants    int // most grants of one entry
	start     time.Time

	change sync.Mutex // held while the standing changes, which takes several rounds of mu

	mu       sync.Mutex
	queues   map[string]*queue // keys for which an acquire is not decided
	spare    *queue            // one that was forgotten: most are needed for one call
	unheld   int               // queues of keys without a grant
	behind   due.Queue[*queue] // queues of keys with one, due when it ends
	parked   int               // waiters parked
	waits    due.Queue[*waiter]
	lengths  lengths     // of the keys' queues
	arrivals arrivalList // acquires that were parked and are not decided
	gates    [gateCount]gate
	draining bool
	sessions sessionList // told of the latest leader, those at its end
	room     sync.Cond   // something that readers wait for has changed: the lane, the standing, a session

	// Where this node stands.
	standing standing
	leader   string        // the client address of the leader, or "" when none is known
	news     uint64        // counts what sessions are told about the leader
	patience time.Duration // until when an elected node may take to serve
	retired  bool          // it will not serve any more
	owing    []*Session    // to be ended, as the outcome of something of theirs is unknown

	// The next entry, and the one under way.
	ready     readyList    // keys whose first waiter goes into the next entry
	releases  []release    // releases that go into the next entry
	orders    []order      // orders that go into the next entry
	probes    []probe      // held back by the entry under way
	acquiring int          // acquires in flight
	releasing int          // releases in flight
	bringing  int          // releases among them that are about to bring a waiter along
	gathered  atomic.Int64 // commands that wait for the next entry; kept in a cluster alone
	busy      bool         // no entry may be sealed: one is under way, or Next has not come
	underWay  bool         // the outcome of entry is not known
	doubt     bool         // that of an earlier one never was
	sealed    time.Duration
	entry     lock.Entry   // the last one, of which commands and proposals go side by side
	proposals []undertaken // what each command of entry answers
	settled   EntryInfo    // of the entry that is settled; kept, as settledAt, for the observer alone
	settledAt time.Duration

	// One call's answers.
	caller *Session   // flushes its own answers
	dirty  []*Session // to be flushed when the lock is given back
	called []func()   // to be called then

	// The timer.
	armed time.Duration // when the timer goroutine looks again
	wake  chan struct{} // it is to look earlier; of capacity one
	stop  chan struct{}
	done  chan struct{}
}

// Config is what a Service is made of.
type Config struct {
	Limits   Limits
	Observer Observer // may be nil
	// Clustered: the service begins as a follower that knows no leader, and is told
	// by Follow, Elected and Lead where it stands. Otherwise it serves from the
	// beginning.
	Clustered bool
}

// New returns a service and starts its timer, which Close stops.
func New(p Proposer, c Config) *Service {
	s := newService(p, c)
	go s.runTimer()
	return s
}

func newService(p Proposer, c Config) *Service {
	s := &Service{
		limits: c.Limits, proposer: p, observer: c.Observer, clustered: c.Clustered,
		grants:   maxRound,
		standing: serving,
		start:    time.Now(),
		queues:   make(map[string]*queue),
		armed:    never,
		wake:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	if c.Clustered {
		s.standing = following
		s.grants = maxCommands
	}
	s.room.L = &s.mu
	s.gates[GateAcquires].limit = c.Limits.Acquires
	s.gates[GateKeys].limit = c.Limits.Keys
	s.gates[GateWaiters].limit = c.Limits.Waiters
	return s
}

// Now returns how much monotonic time has passed since the service began. It is the
// time of its entries.
func (s *Service) Now() time.Duration { return s.now() }

func (s *Service) now() time.Duration { return time.Since(s.start) }

// Acquire is an acquire as a session asked for it.
type Acquire struct {
	Key   string
	Owner uint64        // opaque; comes back with the answer
	Wait  time.Duration // the longest time in the queue; 0 is one immediate attempt
	Lease time.Duration
}

// Acquire takes one acquire of session c. Its answer is delivered before Acquire
// returns or later; none comes once the session has ended, which this ends when the
// node does not serve. It waits while the node is elected and does not serve yet.
func (s *Service) Acquire(c *Session, a Acquire) {
	asked := s.lock(c)
	defer s.unlock()
	now := asked
	if s.standing != serving || c.ended {
		if !s.await(c, anAcquire) {
			s.observeTurnedAway(c, a, asked)
			return
		}
		now = s.now()
	}
	q := s.queues[a.Key]
	current, held := s.proposer.Current(a.Key, now)
	if outcome, why := s.admit(c, q, held, a.Wait > 0); outcome != admitted {
		s.refuseArrival(c, a, outcome, why, asked)
		return
	}
	w := &waiter{session: c, owner: a.Owner, lease: a.Lease, asked: asked, since: now, until: now + a.Wait}
	switch {
	case q != nil:
		s.park(q, w)
	case held:
		q = s.addQueue(a.Key, true)
		s.park(q, w)
		s.waitBehind(q, current.Token, current.Deadline)
	default:
		s.arrive(s.addQueue(a.Key, false), w)
		s.pump(1, now)
		if w.state == arriving && a.Wait > 0 {
			s.waits.Add(w, w.until, uint64(w.since)) // an entry is under way; its wait runs meanwhile
		}
	}
	s.arm()
}

// refuseArrival answers an acquire that never joined a queue.
func (s *Service) refuseArrival(c *Session, a Acquire, outcome Outcome, why Refusal, asked time.Duration) {
	sent := s.observeArrival(a, acquireResults[outcome], why, asked)
	s.deliver(c, Answer{Outcome: outcome, Key: a.Key, Owner: a.Owner, Sent: sent})
}

// Release takes one release of session c. It waits while the release lane is
// full, and like Acquire, until there is room or the session has ended. Token 0 is a
// probe (docs/PROTOCOL.md, section 2).
func (s *Service) Release(c *Session, key string, token uint64) {
	s.mu.Lock()
	s.caller = c
	defer s.unlock()
	kind := aRelease
	if token == 0 {
		kind = aProbe
	}
	asked := s.now()
	if !s.await(c, kind) {
		return
	}
	if kind == aProbe {
		s.probe(c, key)
		return
	}
	s.releasing++
	s.gatherRelease(release{session: c, key: key, token: token, since: asked})
	s.pump(1, s.now())
	s.arm()
}

// Abandon releases a grant whose connection closed before it was handed over, by
// its exact token, if the node still serves (docs/PROTOCOL.md, section 3). It needs
// no room in the lane.
func (s *Service) Abandon(key string, token uint64) {
	s.mu.Lock()
	defer s.unlock()
	if s.standing != serving {
		return
	}
	now := s.now()
	s.gatherRelease(release{key: key, token: token, since: now})
	s.pump(1, now)
	s.arm()
}

// Drain answers every acquire that is not proposed, and every one that comes,
// with Busy, wherever the node stands. Releases go on.
func (s *Service) Drain() {
	s.mu.Lock()
	s.draining = true
	s.room.Broadcast()
	s.mu.Unlock()
	for s.refuseRound() {
	}
}

// refuseRound answers some of the acquires that are not proposed with Busy.
func (s *Service) refuseRound() (more bool) {
	s.mu.Lock()
	defer s.unlock()
	for range maxRound {
		w, ok := s.waits.First()
		if !ok && s.ready.head == nil {
			return false
		}
		if !ok {
			w = s.ready.head.head // an immediate attempt
		}
		s.refuse(w, Busy, RefusedDraining)
	}
	return true
}

// Stats is the service at a glance.
type Stats struct {
	Held         int // keys with a grant
	Waiters      int
	LongestQueue int           // waiters of the key that has the most
	OldestWait   time.Duration // how long the acquire waits that has waited longest; 0 when none does
	Acquires     int           // acquires in flight
	Releases     int           // releases in flight
	Limits       Limits
	Draining     bool
	Gates        [gateCount]GateState
}

// Stats returns the service at a glance. It walks no table.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Held: s.proposer.Len(), Waiters: s.parked, LongestQueue: s.lengths.longest,
		Acquires: s.acquiring, Releases: s.releasing, Limits: s.limits, Draining: s.draining,
	}
	if w := s.arrivals.head; w != nil {
		st.OldestWait = s.now() - w.since
	}
	for i, g := range s.gates {
		st.Gates[i] = GateState{Limit: g.limit, Use: g.use, Closed: g.closed}
	}
	return st
}

// Close stops the timer and waits for it. No answer is given to what is left.
func (s *Service) Close() {
	close(s.stop)
	<-s.done
}
