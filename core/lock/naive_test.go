package lock

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// naive is the machine as a reader of the protocol would write it: maps, looked
// through whole at every entry.
type naive struct {
	now     time.Duration
	reigns  []time.Duration // elapsed of each reign's latest entry, from reign 1 on
	quiet   time.Duration   // how much of the quiet period is left
	begun   bool
	lost    bool   // by a recovery; the next reign's First counts
	fresh   bool   // nothing was granted, nothing left out
	jumps   uint64 // tokens left out
	token   uint64 // the last one granted or left out
	level   uint32
	current map[string]Grant
	ended   map[uint64]Grant // by token: not current any more, not reported yet
	members map[string]Member
	removed []string
}

func newNaive() *naive {
	return &naive{
		level: 1, fresh: true, current: make(map[string]Grant), ended: make(map[uint64]Grant), members: make(map[string]Member),
	}
}

func (n *naive) clone() *naive {
	c := *n
	c.reigns, c.removed = slices.Clone(n.reigns), slices.Clone(n.removed)
	c.current, c.ended, c.members = maps.Clone(n.current), maps.Clone(n.ended), maps.Clone(n.members)
	return &c
}

func (n *naive) apply(e *Entry) []Result {
	n.tell(e)
	for key, g := range n.current {
		if g.Deadline <= n.now {
			delete(n.current, key)
			n.ended[g.Token] = g
		}
	}
	results := make([]Result, 0, len(e.Commands))
	for i := range e.Commands {
		results = append(results, n.command(&e.Commands[i]))
	}
	return results
}

func (n *naive) tell(e *Entry) {
	if e.First != 0 {
		n.reigns = append(n.reigns, e.Elapsed)
		if !n.begun || n.lost {
			n.begun, n.lost = true, false
			n.token = max(n.token, sum(e.First-1, n.jumps))
		}
		return
	}
	if e.Reign == 0 || e.Reign != uint64(len(n.reigns)) {
		return
	}
	elapsed := &n.reigns[e.Reign-1]
	if passed := e.Elapsed - *elapsed; passed > 0 {
		*elapsed = e.Elapsed
		n.now += passed
		n.quiet = max(n.quiet-passed, 0)
	}
}

func sum(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

func (n *naive) command(c *Command) Result {
	switch c.Kind {
	case KindMember:
		return Result{Status: n.member(*c.Member)}
	case KindLevel:
		n.level = max(n.level, c.Level)
		return Result{Status: Done}
	}
	g, held := n.current[c.Key]
	switch {
	case c.Kind == KindRelease && held && g.Token == c.Token:
		delete(n.current, c.Key)
		return Result{Status: Released, Held: n.now - (g.Deadline - g.Lease)}
	case c.Kind == KindRelease:
		return Result{Status: NotCurrent}
	case n.quiet > 0:
		return Result{Status: Quiet}
	case held:
		return Result{Status: Held}
	case !n.begun || n.token == math.MaxUint64:
		return Result{Status: Exhausted}
	}
	n.token++
	n.fresh = false
	n.current[c.Key] = Grant{
		Key: c.Key, Token: n.token, Owner: c.Owner, Deadline: n.now + c.Lease, Lease: c.Lease, Holder: c.Holder,
	}
	return Result{Status: Granted, Token: n.token}
}

func (n *naive) member(m Member) Status {
	_, known := n.members[m.ID]
	gone := slices.Contains(n.removed, m.ID)
	switch {
	case m.ID == "" || !m.Removed && (gone || !known && len(n.members) == MaxMembers):
		return Refused
	case !m.Removed:
		n.members[m.ID] = m
	case !gone:
		delete(n.members, m.ID)
		n.removed = append(n.removed, m.ID)
		n.removed = n.removed[max(len(n.removed)-MaxRemoved, 0):]
	}
	return Done
}

func (n *naive) list() []Member {
	var all []Member
	for _, m := range n.members {
		all = append(all, m)
	}
	for _, id := range n.removed {
		all = append(all, Member{ID: id, Removed: true})
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (n *naive) recover(quiet time.Duration) {
	n.token, n.jumps, n.lost, n.fresh = sum(n.token, TokenJump), sum(n.jumps, TokenJump), true, false
	n.quiet = max(n.quiet, quiet)
	if quiet == 0 {
		n.quiet = 0
	}
}

func (n *naive) adopt(file *naive) {
	n.lost = n.lost || file.lost
	n.now, n.quiet = file.now, max(n.quiet, file.quiet)
	n.current, n.ended = file.current, file.ended
	if more := file.jumps - n.jumps; file.jumps > n.jumps {
		n.token, n.jumps = sum(n.token, more), file.jumps
	}
	n.token = max(n.token, file.token)
	n.begun, n.fresh = n.begun || file.begun, n.fresh && file.fresh
}

// report checks off the grants that an entry says it took out.
func (n *naive) report(ended []Grant, commands int) error {
	if len(ended) > MaxEnded+commands {
		return fmt.Errorf("%d ended in one entry", len(ended))
	}
	for i, g := range ended {
		if n.ended[g.Token] != g {
			return fmt.Errorf("%v is reported, which has not ended or was reported before", g)
		}
		delete(n.ended, g.Token)
		// What comes behind the sweep was replaced by a grant, in the commands' order.
		if 0 < i && i < MaxEnded && ended[i-1].Deadline > g.Deadline && len(ended) <= MaxEnded {
			return fmt.Errorf("%v is reported before %v", ended[i-1], g)
		}
	}
	if len(ended) < MaxEnded && len(n.ended) > 0 {
		return fmt.Errorf("%d that have ended stay in the table, though only %d were taken out", len(n.ended), len(ended))
	}
	return nil
}
