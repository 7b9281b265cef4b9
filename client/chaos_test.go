package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// model is a true lock server over the lab's network, whose sessions are slow, stall
// and break at random. It knows who really holds what.
type model struct {
	l      *lab
	mu     sync.Mutex
	rand   *rand.Rand
	token  uint64
	locks  map[string]*modelLock
	broken bool // sessions break from time to time

	leader   string // empty: a single server
	sessions map[*modelSession]bool
}

type modelLock struct {
	token uint64
	timer *time.Timer
	queue []*modelWaiter
}

type modelWaiter struct {
	s     *modelSession
	r     wire.Request
	timer *time.Timer
}

type modelSession struct {
	m       *model
	addr    string
	p       *peer
	replies chan wire.Reply
	gone    chan struct{}
}

func (m *model) chance(percent int) bool { return m.rand.IntN(100) < percent }

func (m *model) upTo(d time.Duration) time.Duration { return time.Duration(m.rand.Int64N(int64(d))) }

// holder returns the token that holds key; 0 when none does.
func (m *model) holder(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.locks[key]; l != nil {
		return l.token
	}
	return 0
}

// serve is a session of the node at addr.
func (m *model) serve(addr string, p *peer) {
	s := &modelSession{m: m, addr: addr, p: p, replies: make(chan wire.Reply, 4096), gone: make(chan struct{})}
	p.probes = true
	p.challengeAny()
	m.mu.Lock()
	s.replies <- single
	if m.leader != "" {
		<-s.replies
		s.replies <- names(m.leader)
	}
	m.sessions[s] = true
	m.mu.Unlock()
	go s.write()
	for {
		r, ok := p.read()
		if !ok {
			break
		}
		m.mu.Lock()
		m.decide(s, r)
		m.mu.Unlock()
	}
	close(s.gone)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, s)
	m.drop(func(w *modelWaiter) bool { return w.s == s })
}

// drop takes the waiters that which names out of their queues.
func (m *model) drop(which func(*modelWaiter) bool) {
	for _, l := range m.locks {
		l.queue = slices.DeleteFunc(l.queue, func(w *modelWaiter) bool {
			gone := which(w)
			if gone {
				w.timer.Stop()
			}
			return gone
		})
	}
}

// lead makes addr the leader: the old one refuses its waiters and names the new.
func (m *model) lead(addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader = addr
	m.drop(func(w *modelWaiter) bool { w.s.replies <- answer(wire.OpBusy, w.r); return true })
	for s := range m.sessions {
		s.replies <- names(addr)
	}
}

// write sends replies in order, each after a while.
func (s *modelSession) write() {
	for {
		select {
		case <-s.gone:
			return
		case r := <-s.replies:
			s.m.mu.Lock()
			var pause time.Duration
			if s.m.chance(20) {
				pause = s.m.upTo(300 * time.Millisecond)
			}
			cut := s.m.broken && s.m.chance(3)
			s.m.mu.Unlock()
			s.p.l.sleep(pause)
			if cut {
				s.p.c.reset()
				return
			}
			s.p.send(r)
			if r.Op == wire.OpMoved {
				s.p.c.Close()
			}
		}
	}
}

func (m *model) decide(s *modelSession, r wire.Request) {
	if m.leader != "" && s.addr != m.leader {
		s.replies <- wire.Reply{Op: wire.OpMoved, Text: m.leader}
		return
	}
	l := m.locks[r.Key]
	if l == nil {
		l = &modelLock{}
		m.locks[r.Key] = l
	}
	switch {
	case r.Op == wire.OpRelease && (r.Token == 0 || r.Token != l.token):
		s.replies <- answer(wire.OpNotCurrent, r)
	case r.Op == wire.OpRelease:
		s.replies <- answer(wire.OpRelease, r)
		m.free(l)
	case m.chance(2):
		s.replies <- answer(wire.OpBusy, r)
	case l.token == 0:
		m.grant(l, s, r)
	case r.Wait == 0:
		s.replies <- answer(wire.OpTimeout, r)
	default:
		w := &modelWaiter{s: s, r: r}
		w.timer = time.AfterFunc(time.Duration(r.Wait)*time.Second, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			for i, o := range l.queue {
				if o == w {
					l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
					s.replies <- answer(wire.OpTimeout, r)
				}
			}
		})
		l.queue = append(l.queue, w)
	}
}

func (m *model) grant(l *modelLock, s *modelSession, r wire.Request) {
	m.token++
	token := m.token
	l.token = token
	l.timer = time.AfterFunc(time.Duration(r.Lease)*time.Second, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if l.token == token {
			m.free(l)
		}
	})
	s.replies <- grant(r, token)
}

func (m *model) free(l *modelLock) {
	l.timer.Stop()
	l.token = 0
	if len(l.queue) > 0 {
		w := l.queue[0]
		l.queue = l.queue[1:]
		w.timer.Stop()
		m.grant(l, w.s, w.r)
	}
}

// Whatever the sessions do: while a ticket says that time remains, its token holds
// the key; every call ends soon after its deadline; and in the end nothing is left.
func TestWhileTimeRemainsATicketHoldsItsKeyWhateverHappensToTheSessions(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CLIENT_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	for i := range uint64(8) {
		t.Run(fmt.Sprint("CLIENT_SEED=", seed+i), func(t *testing.T) {
			inLab(t, func(l *lab) { l.chaos(seed + i) })
		})
	}
}

func (l *lab) chaos(seed uint64) {
	m := &model{
		l: l, rand: rand.New(rand.NewPCG(seed, 1)), locks: map[string]*modelLock{}, sessions: map[*modelSession]bool{},
		broken: seed%2 == 0,
	}
	addrs := []string{here}
	if seed%4 < 2 {
		addrs = []string{"a:1", "b:1", "c:1"}
		m.leader = "a:1"
	}
	for _, addr := range addrs {
		l.node(addr).auto = func(p *peer) { m.serve(addr, p) }
	}
	b := l.broker(func(c *Config) { c.Addrs, c.MaxPending, c.MaxSessions = addrs, 24, 4 })
	var callers sync.WaitGroup
	if m.leader != "" {
		callers.Go(func() {
			for i := range 15 {
				l.sleep(time.Duration(i%5) * time.Second)
				m.lead(addrs[i%3])
			}
		})
	}
	for i := range 60 {
		callers.Go(func() { l.caller(m, b, rand.New(rand.NewPCG(seed, uint64(i+2)))) })
	}
	callers.Wait()
	l.sleep(20 * time.Second) // longer than a release, a compensation and a lease
	if s := b.Stats(); s.Pending != 0 || s.Compensations != 0 || s.Held != 0 {
		l.Errorf("left: %+v", s)
	}
	b.mu.Lock()
	for _, n := range b.nodes {
		for _, sl := range n.slots {
			s := sl.sess
			if s != nil && (!s.empty() || s.blocking != 0 || s.sentOwners.n != 0 || s.sentTokens.n != 0) {
				l.Errorf("left on a session: %d %d %d %d, %d blocking", s.releases.n, s.acquires.n, s.sentReleases.n, s.sentAcquires.n, s.blocking)
			}
		}
	}
	if b.acquires.used+b.releases.used+b.acquires.waiting.n+b.releases.waiting.n+b.acquires.parked.n+b.releases.parked.n != 0 {
		l.Errorf("places are left in use: %d %d", b.acquires.used, b.releases.used)
	}
	b.unlock()
	m.mu.Lock()
	for key, lock := range m.locks {
		if lock.token != 0 {
			l.Errorf("%q is held in the end", key)
		}
	}
	m.mu.Unlock()
}

func (l *lab) caller(m *model, b *Broker, rand *rand.Rand) {
	for range 30 {
		key := fmt.Sprint("key-", rand.IntN(20))
		wait := time.Duration(max(0, rand.IntN(6)-1)) * time.Second
		budget := time.Duration(rand.IntN(3)) * time.Second
		ctx, cancel := context.WithCancel(context.Background())
		if rand.IntN(10) == 0 {
			stop := time.AfterFunc(time.Duration(rand.Int64N(int64(5*time.Second))), cancel)
			defer stop.Stop()
		}
		began := time.Now()
		ticket, err := b.Acquire(ctx, key, wait, time.Duration(2+rand.IntN(6))*time.Second, budget)
		cancel()
		most := wait
		if wait == 0 {
			most = immediateTime
		}
		if took := time.Since(began); took > most+time.Second+DefaultReplyGrace+minSweep {
			l.Errorf("a wait of %s took %s: %v", wait, took, err)
		}
		if err != nil {
			if n := len(kindsOf(err)); n == 0 {
				l.Errorf("an error of no kind: %v", err)
			}
			continue
		}
		l.hold(m, b, ticket, rand)
	}
}

func (l *lab) hold(m *model, b *Broker, ticket *Ticket, rand *rand.Rand) {
	for range rand.IntN(5) {
		if ticket.Remaining() > 0 && m.holder(ticket.Key()) != ticket.Token() {
			l.Errorf("%s remain, but %q is held by %d, not by %d", ticket.Remaining(), ticket.Key(), m.holder(ticket.Key()), ticket.Token())
		}
		l.sleep(time.Duration(rand.Int64N(int64(500 * time.Millisecond))))
	}
	began, err := time.Now(), error(nil)
	switch rand.IntN(5) {
	case 0: // forgotten: the lease's end frees the key
		return
	case 1:
		err = ticket.Close()
	case 2:
		key, token := ticket.Detach()
		err = b.Release(context.Background(), key, token)
	default:
		err = ticket.Release(context.Background())
	}
	if took := time.Since(began); took > releaseTime+minSweep {
		l.Errorf("a release took %s: %v", took, err)
	}
	if err == nil && m.holder(ticket.Key()) == ticket.Token() {
		l.Errorf("%q was released, but %d holds it", ticket.Key(), ticket.Token())
	}
	if err != nil && !errors.Is(err, ErrNotCurrent) && !errors.Is(err, ErrIndeterminate) && !errors.Is(err, ErrTimeout) {
		l.Errorf("release: %v", err)
	}
}
