package lock

import (
	"math"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/due"
)

// MaxEnded bounds how many ended leases one entry takes out of the table, so that
// applying one stays well under a millisecond even when 100,000 leases end in the
// same instant. The rest have ended all the same (they are no longer current) and
// are taken out by the entries that follow.
const MaxEnded = 256

// MaxToken is the last token; tokens never wrap.
const MaxToken = math.MaxUint64

// Machine is the table of current grants and what is replicated beside it. It must
// not be used by two goroutines at once.
type Machine struct {
	clock   clock
	tokens  tokens
	level   uint32
	members members
	grants  map[string]*grant
	leases  due.Queue[*grant]
}

type grant struct {
	due.Slot // due when the lease runs out; its order is the token
	key      string
	owner    uint64
	lease    time.Duration
	holder   string
}

func (g *grant) token() uint64 { return g.Order() }

// New returns an empty machine. It grants nothing before an entry with First
// begins its first reign.
func New() *Machine {
	// Not Level: what an older version made of the same entries must be equal.
	const firstLevel = 1
	return &Machine{level: firstLevel, grants: make(map[string]*grant)}
}

// Apply applies one entry and puts what it did into out, whose slices it reuses.
// Leases that have run out by the entry's time end before its commands run.
func (m *Machine) Apply(e *Entry, out *Outcome) {
	out.Results, out.Ended = out.Results[:0], out.Ended[:0]
	if e.First != 0 {
		m.tokens.begin(e.First)
		m.clock.begin(e.Elapsed)
	} else {
		m.clock.advance(e.Reign, e.Elapsed)
	}
	out.Reign, out.Now = m.clock.reign, m.clock.now
	m.sweep(out)
	for i := range e.Commands {
		out.Results = append(out.Results, m.apply(&e.Commands[i], out))
	}
}

// sweep takes leases that have ended out of the table, oldest deadline first, of
// equal ones the lowest token: what one sweep leaves to the next must not differ
// between a replica that applied every entry and one that began from a snapshot.
func (m *Machine) sweep(out *Outcome) {
	for range MaxEnded {
		g, ok := m.leases.First()
		if !ok || !m.ended(g) {
			return
		}
		if m.grants[g.key] != g {
			panic("lock: a deadline outlived its grant")
		}
		m.remove(g)
		out.Ended = append(out.Ended, g.export())
	}
}

func (m *Machine) apply(c *Command, out *Outcome) Result {
	switch c.Kind {
	case KindGrant:
		return m.grant(c, out)
	case KindRelease:
		return m.release(c)
	case KindMember:
		return Result{Status: m.members.apply(c.Member)}
	case KindLevel:
		m.level = max(m.level, c.Level)
		return Result{Status: Done}
	}
	panic("lock: unknown kind of command")
}

func (m *Machine) grant(c *Command, out *Outcome) Result {
	if m.clock.quiet != 0 {
		return Result{Status: Quiet}
	}
	if g := m.grants[c.Key]; g != nil {
		if !m.ended(g) {
			return Result{Status: Held}
		}
		m.remove(g)
		out.Ended = append(out.Ended, g.export())
	}
	token, ok := m.tokens.take()
	if !ok {
		return Result{Status: Exhausted}
	}
	g := &grant{key: c.Key, owner: c.Owner, lease: c.Lease, holder: c.Holder}
	m.add(g, m.clock.now+c.Lease, token)
	return Result{Status: Granted, Token: token}
}

func (m *Machine) release(c *Command) Result {
	g := m.grants[c.Key]
	if g == nil || g.token() != c.Token || m.ended(g) {
		return Result{Status: NotCurrent}
	}
	m.remove(g)
	return Result{Status: Released, Held: m.clock.now - (g.DueAt() - g.lease)}
}

func (m *Machine) add(g *grant, deadline time.Duration, token uint64) {
	m.grants[g.key] = g
	m.leases.Add(g, deadline, token)
}

func (m *Machine) remove(g *grant) {
	m.leases.Remove(g)
	delete(m.grants, g.key)
}

// ended says whether the lease has run out. Such a grant is not current, whether
// or not a sweep has come by.
func (m *Machine) ended(g *grant) bool { return g.DueAt() <= m.clock.now }

func (g *grant) export() Grant {
	return Grant{Key: g.key, Token: g.token(), Owner: g.owner, Deadline: g.DueAt(), Lease: g.lease, Holder: g.holder}
}
