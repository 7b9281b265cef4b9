package replica

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

const (
	// outcomePatience is how long an entry may be under way before its outcome counts
	// as unknown: a disk that hangs without an error keeps raft's main loop from ever
	// looking at its lease.
	outcomePatience = 5 * time.Second
	// enqueuePatience is how long raft may take to accept an entry; less, so that one
	// that was certainly not accepted is told from one that hangs.
	enqueuePatience = 2 * time.Second
	// untakenMost is how often it may fail to do so in a row: about as long as an outcome
	// may take.
	untakenMost = 3
	// refusedPause is the pause before the next entry when raft has refused one at once, as
	// it does while it hands the leadership over: there may always be a next one.
	refusedPause = 5 * time.Millisecond
	// The next entry waits for the callers that the last one answered, as long as they
	// keep coming: until none came for gatherGap or, where that is more, a part of the time
	// that the last entry took; and gatherMost of that time in all. DESIGN.md argues it.
	gatherGap  = 100 * time.Microsecond
	gapPart    = 8
	gatherMost = 2
	gatherMax  = 2 * time.Millisecond
	// gatherYields is how often the waiting loop lets other goroutines run before it
	// naps instead, so that other processes can.
	gatherYields = 16
	gatherNap    = 10 * time.Microsecond
	// gatherNaps bounds the naps, for where time stands still, as in tests.
	gatherNaps = 64
)

// entryHeader and commandSize are about how many bytes an entry takes: memory for it is
// taken once.
const (
	entryHeader = 32
	commandSize = 96
)

// proposal is an entry on its way to raft.
type proposal struct {
	reign    uint64
	data     []byte
	commands int
}

// proposing hands entries from the service to the proposing goroutine. At most one is
// on its way at any time, and at most one waits to be taken: a later one replaces it,
// since its reign has ended then.
type proposing struct {
	mu   sync.Mutex
	next *proposal
	kick chan struct{} // something is in next; of capacity one

	// outcome is held while the service is told an entry's outcome or the node's
	// standing, so that an outcome comes before the standing that forgets the entry, or
	// not at all.
	outcome sync.Mutex
	reign   uint64    // the one that this node serves in; 0 when it does not. Written under both locks
	flying  *proposal // its outcome has not been told
}

// Propose takes one entry of the service, which holds its lock. The outcome is told to
// the service later.
func (r *Replica) Propose(e *lock.Entry) (*lock.Outcome, bool) {
	p := &r.proposing
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Reign = p.reign
	// Encoded here: the service may use the entry's memory for another reign's entries
	// before this one has been looked at.
	p.next = &proposal{reign: e.Reign, data: lock.AppendEntry(make([]byte, 0, entryHeader+len(e.Commands)*commandSize), e), commands: len(e.Commands)}
	select {
	case p.kick <- struct{}{}:
	default:
	}
	return nil, false
}

// take returns the entry that waits, unless its reign has ended.
func (p *proposing) take() *proposal {
	p.outcome.Lock()
	defer p.outcome.Unlock()
	p.mu.Lock()
	next := p.next
	p.next = nil
	p.mu.Unlock()
	if next == nil || next.reign != p.reign || p.reign == 0 {
		return nil
	}
	p.flying = next
	return next
}

// settle tells the service an entry's outcome, unless its standing has been told since.
func (p *proposing) settle(f *proposal, tell func()) bool {
	p.outcome.Lock()
	defer p.outcome.Unlock()
	if p.flying != f {
		return false
	}
	p.flying = nil
	tell()
	return true
}

// within calls a function unless the reign has ended: what it allows would else be
// allowed to a later one.
func (p *proposing) within(reign uint64, do func()) {
	p.outcome.Lock()
	defer p.outcome.Unlock()
	if p.reign == reign {
		do()
	}
}

// setReign begins or ends (0) a reign and tells the service of its standing. Whatever
// is under way is forgotten.
func (p *proposing) setReign(reign uint64, tell func()) {
	p.outcome.Lock()
	defer p.outcome.Unlock()
	p.mu.Lock()
	p.reign, p.next = reign, nil
	p.mu.Unlock()
	p.flying = nil
	tell()
}

// propose is the proposing loop of a generation: one entry after the other, and a short
// time for the next one to gather.
func (g *generation) propose() {
	p := &g.r.proposing
	for {
		select {
		case <-p.kick:
		case <-g.stop:
			return
		}
		for next := p.take(); next != nil; next = p.take() {
			g.carry(next)
			select {
			case <-g.stop: // what comes now is the next generation's
				return
			default:
			}
		}
	}
}

// carry takes one entry to its outcome and tells the service, which may then seal the
// next one.
func (g *generation) carry(next *proposal) {
	start := time.Now()
	p, service := &g.r.proposing, g.r.service
	out, err := g.apply(next.data, func() { p.settle(next, service.Lost) })
	switch {
	case err == nil:
		if !p.settle(next, func() { service.Applied(out) }) {
			return
		}
		if o := g.r.opts.Observer; o != nil {
			o.Committed(next.commands, time.Since(start))
		}
		g.gather(next.commands, time.Since(start))
	case certainlyNot(err):
		if !p.settle(next, service.Refused) {
			return
		}
		g.rest(refusedPause)
	default:
		if !p.settle(next, service.Lost) {
			return
		}
	}
	p.within(next.reign, service.Next)
}

// rest waits, unless the generation ends.
func (g *generation) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.stop:
	}
}

// apply takes an entry's bytes through raft. When that hangs, the generation ends, and
// what hung is told first.
func (g *generation) apply(data []byte, hung func()) (*lock.Outcome, error) {
	defer g.watch(hung)()
	f := g.raft.Apply(data, enqueuePatience)
	err := f.Error()
	g.taken(err)
	if err != nil {
		return nil, err
	}
	switch response := f.Response().(type) {
	case *lock.Outcome:
		return response, nil
	case error:
		return nil, response
	}
	return nil, errors.New("raft answered an entry with nothing")
}

// watch ends the generation unless the function that it returns is called in time.
func (g *generation) watch(hung func()) (ended func()) {
	t := time.AfterFunc(outcomePatience, func() {
		hung()
		g.fail(errStalled)
	})
	return func() { t.Stop() }
}

// taken ends the generation when raft has taken nothing for untakenMost times in a row:
// its main loop hangs in something that nobody watches, as the first entry of a leader.
func (g *generation) taken(err error) {
	if !errors.Is(err, raft.ErrEnqueueTimeout) {
		g.untaken.Store(0)
	} else if g.untaken.Add(1) == untakenMost {
		g.fail(errStalled)
	}
}

// certainlyNot tells whether an error of raft says that the entry was not proposed. Any
// other may still commit: the leadership was lost, the store failed with the bytes on
// disk.
func certainlyNot(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrEnqueueTimeout) || errors.Is(err, raft.ErrLeadershipTransferInProgress)
}

// gather waits until the callers that an entry answered have come back, as far as they
// do at once. A lone caller is not waited for.
func (g *generation) gather(answered int, took time.Duration) {
	if answered < 2 {
		return
	}
	start := time.Now()
	most := min(took/gatherMost, gatherMax)
	gap := max(took/gapPart, gatherGap)
	gathered := g.r.service.Gathered()
	enough := gathered + answered
	last := start // when somebody came
	for i := range gatherYields + gatherNaps {
		now := time.Now()
		if n := g.r.service.Gathered(); n > gathered {
			gathered, last = n, now
		}
		if gathered >= enough || now.Sub(last) >= gap || now.Sub(start) >= most {
			return
		}
		if i < gatherYields {
			runtime.Gosched()
		} else {
			nap(gatherNap)
		}
	}
}

// Current returns the grant that a key has at the given time of the service.
func (r *Replica) Current(key string, at time.Duration) (grant lock.Grant, held bool) {
	r.look(func(m *lock.Machine) {
		offset := m.Now() - m.Elapsed()
		grant, held = m.Current(key)
		if held {
			grant.Deadline -= offset
			held = grant.Deadline > at
		}
	})
	if !held {
		return lock.Grant{}, false
	}
	return grant, true
}

// Len returns how many keys have a grant.
func (r *Replica) Len() (n int) {
	r.look(func(m *lock.Machine) { n = m.Len() })
	return n
}

// NextDeadline returns when the first lease ends, in the service's time.
func (r *Replica) NextDeadline() (at time.Duration, ok bool) {
	r.look(func(m *lock.Machine) {
		if at, ok = m.NextDeadline(); ok {
			at -= m.Now() - m.Elapsed()
		}
	})
	return at, ok
}

// look calls a function with the machine as it is, which it must neither change nor keep.
func (r *Replica) look(do func(m *lock.Machine)) {
	if f := r.fsm.Load(); f != nil {
		f.look(do)
	}
}
