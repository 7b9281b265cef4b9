package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/lock"
)

// Many sessions on many threads while leadership comes and goes: every acquire and
// every release is answered, or its session is ended. Run it with -race.
func TestManySessionsWhileLeadershipChanges(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			const sessions, rounds = 16, 100
			r := newFakeReplica(seed)
			over := make(chan struct{})
			var replica, clients sync.WaitGroup
			replica.Go(func() { r.propose(over) })
			replica.Go(func() { r.change(over) })
			for i := range uint64(sessions) {
				clients.Go(func() {
					rng := rand.New(rand.NewPCG(seed, i))
					for n := range uint64(rounds) {
						r.visit(t, rng, i*rounds+n)
					}
				})
			}
			clients.Wait()
			close(over)
			replica.Wait()
			r.s.Retire()
			if err := r.s.check(); err != nil {
				t.Errorf("seed %d: the service is broken: %v", seed, err)
			}
			if st := r.s.Stats(); st.Waiters != 0 || r.s.Gathered() != 0 {
				t.Errorf("seed %d: %d waiters and %d commands are left", seed, st.Waiters, r.s.Gathered())
			}
			r.s.Close()
		})
	}
}

// fakeReplica keeps the rules of a Proposer whose outcomes come from another goroutine.
type fakeReplica struct {
	s   *Service
	rng *rand.Rand // of the proposing goroutine

	outcome sync.Mutex // held while an outcome or a standing is told
	flying  *lock.Entry

	mu      sync.Mutex
	machine *local.Proposer
	next    *lock.Entry
	kick    chan struct{}
}

func newFakeReplica(seed uint64) *fakeReplica {
	r := &fakeReplica{rng: rand.New(rand.NewPCG(seed, 99)), machine: local.New(1), kick: make(chan struct{}, 1)}
	r.s = New(r, Config{Limits: fill(Limits{Releases: 4}), Clustered: true})
	return r
}

func (r *fakeReplica) Propose(e *lock.Entry) (*lock.Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = &lock.Entry{Elapsed: e.Elapsed, Commands: slices.Clone(e.Commands)}
	select {
	case r.kick <- struct{}{}:
	default:
	}
	return nil, false
}

func (r *fakeReplica) Current(key string, at time.Duration) (lock.Grant, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Current(key, at)
}

func (r *fakeReplica) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Len()
}

func (r *fakeReplica) NextDeadline() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.NextDeadline()
}

// propose takes entries to their outcomes.
func (r *fakeReplica) propose(over chan struct{}) {
	for {
		select {
		case <-r.kick:
		case <-over:
			return
		}
		r.outcome.Lock()
		r.mu.Lock()
		e := r.next
		r.next = nil
		r.mu.Unlock()
		r.flying = e
		r.outcome.Unlock()
		if e != nil {
			r.carry(e)
		}
	}
}

func (r *fakeReplica) carry(e *lock.Entry) {
	tell := r.s.Lost
	chance := r.rng.IntN(20)
	if chance > 1 {
		r.mu.Lock()
		out, _ := r.machine.Propose(e)
		copied := lock.Outcome{Results: slices.Clone(out.Results), Ended: slices.Clone(out.Ended)}
		r.mu.Unlock()
		if chance > 2 {
			tell = func() { r.s.Applied(&copied) }
		}
	} else if chance == 0 {
		tell = r.s.Refused
	}
	r.settle(e, tell)
	r.settle(e, func() { r.flying = nil; r.s.Next() })
}

// settle tells the service something of an entry, unless its standing was told since.
func (r *fakeReplica) settle(e *lock.Entry, tell func()) {
	r.outcome.Lock()
	defer r.outcome.Unlock()
	if r.flying == e {
		tell()
	}
}

// change has the leadership change.
func (r *fakeReplica) change(over chan struct{}) {
	rng := rand.New(rand.NewPCG(1, 2))
	for {
		to := []func(){
			func() { r.s.Follow("") }, func() { r.s.Follow("n2") }, r.s.Elected,
			func() { r.s.Lead("self") }, func() { r.s.Lead("self") },
		}[rng.IntN(5)]
		r.outcome.Lock()
		r.flying = nil
		r.mu.Lock()
		r.next = nil
		r.mu.Unlock()
		to()
		r.outcome.Unlock()
		select {
		case <-over:
			return
		case <-time.After(time.Duration(rng.IntN(100)) * time.Millisecond):
		}
	}
}

// visit asks for a key and gives it back, unless its session ends; now and then it
// leaves early.
func (r *fakeReplica) visit(t *testing.T, rng *rand.Rand, owner uint64) {
	told := &mailbox{answers: make(chan Answer, 8), end: make(chan struct{})}
	session := r.s.Open(told, "")
	defer r.s.Leave(session)
	key := fmt.Sprint(rng.IntN(4))
	r.s.Acquire(session, Acquire{Key: key, Owner: owner, Wait: time.Minute, Lease: time.Second})
	if rng.IntN(10) == 0 {
		return
	}
	a, ok := told.next(t)
	if !ok || a.Outcome != Granted {
		return
	}
	time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
	if rng.IntN(10) == 0 {
		r.s.Abandon(key, a.Token)
		return
	}
	r.s.Release(session, key, 0)
	r.s.Release(session, key, a.Token)
	for range 2 {
		if _, ok := told.next(t); !ok {
			return
		}
	}
}

// mailbox is a sink that somebody reads.
type mailbox struct {
	answers chan Answer
	end     chan struct{}
}

func (m *mailbox) Deliver(a Answer)      { m.answers <- a }
func (m *mailbox) Flush()                {}
func (m *mailbox) Leader(string)         {}
func (m *mailbox) End(EndReason, string) { close(m.end) }

// next returns the next answer, or false when the session was ended.
func (m *mailbox) next(t *testing.T) (Answer, bool) {
	select {
	case a := <-m.answers:
		return a, true
	case <-m.end:
		return Answer{}, false
	case <-time.After(10 * time.Minute):
		t.Error("neither answered nor ended")
		return Answer{}, false
	}
}
