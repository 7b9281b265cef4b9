package replica

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/link"
	"github.com/ticketing-io/ticketing/core/lock"
)

const (
	// peerFresh is how long what a node said of itself counts.
	peerFresh = 3 * time.Second
	// leaderReminder is every how many rounds the log says that there is no leader, first
	// after a sixth of them: an election takes less.
	leaderReminder = 30
)

// seen is what a node said of itself last.
type seen struct {
	peer    Peer
	at      time.Time // when it was asked
	err     error     // why it did not answer the last time
	healthy time.Time // since when it has answered and been at most a round of questions behind; zero when it is not
}

// watchPeers asks the other members about themselves once a second while this node
// leads: hashicorp/raft tells no follower's index. What they say decides on promotions,
// removals and the feature level, and brings their addresses up to date.
func (g *generation) watchPeers() {
	tick := time.NewTicker(askPause)
	defer tick.Stop()
	// What this node had applied a round ago: a healthy member has it by now. 0 is none.
	var mark uint64
	alone := 0 // rounds without a leader
	for {
		select {
		case <-tick.C:
		case <-g.stop:
			return
		}
		servers := g.servers()
		if len(servers) > 0 {
			if err := g.r.began(); err != nil { // of a node that joined
				g.fail(err)
			}
		}
		if !g.r.serving.Load() {
			g.r.forgetPeers()
			mark = 0
			alone = g.remindOfLeader(alone)
			if len(servers) > 0 && !hasServer(servers, g.r.opts.NodeID) {
				g.askWhetherRemoved(servers)
			}
			continue
		}
		var members []Member
		for _, s := range servers {
			members = append(members, Member{ID: string(s.ID), Raft: string(s.Address)})
		}
		applied := g.raft.AppliedIndex()
		if mark == 0 {
			mark = applied
		}
		for _, a := range g.r.askAll(others(members, g.r.opts.NodeID)) {
			g.r.see(a, mark)
		}
		mark = applied
		g.bringUpToDate()
		g.raiseLevel(servers)
	}
}

// remindOfLeader tells the log, now and then, that there is no leader. It counts rounds.
func (g *generation) remindOfLeader(rounds int) int {
	_, id := g.raft.LeaderWithID()
	if id != "" || g.r.Status().Role == Waiting {
		return 0
	}
	if rounds%leaderReminder == leaderReminder/6 {
		g.r.log.Warn("there is no leader: this node waits until it reaches a majority of the voters")
	}
	return rounds + 1
}

// askWhetherRemoved asks the members whether this node was removed. Its configuration,
// without it, is no proof: a node that catches up sees those from before it was added.
// It dials nobody else then, since raft calls no election.
func (g *generation) askWhetherRemoved(servers []raft.Server) {
	var members []Member
	for _, s := range servers {
		members = append(members, Member{ID: string(s.ID), Raft: string(s.Address)})
	}
	for _, a := range g.r.askAll(members) {
		if errors.Is(a.err, link.ErrRemoved) {
			g.Removed()
			return
		}
	}
}

func (r *Replica) forgetPeers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.peers)
}

// see notes an answer. Who is healthy has applied what mark says.
func (r *Replica) see(a answer, mark uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.peers[a.member.ID]
	switch {
	case a.err != nil && s.err == nil:
		r.log.Warn("a member does not answer", "member", a.member.ID, "raft", a.member.Raft, "error", a.err)
	case a.err == nil && s.err != nil:
		r.log.Info("a member answers again", "member", a.member.ID)
	}
	s.err = a.err
	now := time.Now()
	if a.err == nil {
		s.peer, s.at = a.peer, now
	}
	switch {
	case a.err != nil || s.peer.Applied < mark:
		s.healthy = time.Time{}
	case s.healthy.IsZero():
		s.healthy = now
	}
	r.peers[a.member.ID] = s
}

// lastSeen returns what a node said last, if that is fresh.
func (r *Replica) lastSeen(id string) (seen, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.peers[id]
	return s, ok && time.Since(s.at) < peerFresh
}

// isHealthy tells whether a node answers and is close behind.
func (r *Replica) isHealthy(id string) bool {
	s, fresh := r.lastSeen(id)
	return id == r.opts.NodeID || fresh && !s.healthy.IsZero()
}

// bringUpToDate replicates the addresses that members say they are configured with, and
// marks as removed who is in raft's configuration no more: whoever removed it may have
// failed in between. Not while somebody else changes them.
func (g *generation) bringUpToDate() {
	select {
	case g.r.changing <- struct{}{}:
	default:
		return
	}
	servers := g.servers() // not those that were asked: they may have changed since
	var commands []lock.Command
	g.r.look(func(m *lock.Machine) {
		commands = g.missingMembers(m)
		for _, s := range servers {
			p, fresh := g.r.lastSeen(string(s.ID))
			want := lock.Member{ID: string(s.ID), Client: p.peer.Client, Admin: p.peer.Admin}
			if !fresh || want.Client == "" || checkMember(want) != nil {
				continue
			}
			if have, ok := memberOf(m, want.ID); !ok || have != want {
				commands = append(commands, lock.Command{Kind: lock.KindMember, Member: &want})
			}
		}
		for _, have := range m.Members() {
			if !have.Removed && !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == have.ID }) {
				gone := lock.Member{ID: have.ID, Removed: true}
				commands = append(commands, lock.Command{Kind: lock.KindMember, Member: &gone})
			}
		}
	})
	var undecided atomic.Int32
	undecided.Store(int32(len(commands)) + 1)
	decided := func() {
		if undecided.Add(-1) == 0 {
			g.r.changed()
		}
	}
	defer decided()
	for _, c := range commands {
		// Tried again in a second, whatever comes out.
		g.r.service.Order(c, func(lock.Result, error) { decided() })
	}
}

// missingMembers returns commands for the members of the cluster's first start that the
// machine does not know, and for this node's own addresses where they have changed.
func (g *generation) missingMembers(m *lock.Machine) []lock.Command {
	var commands []lock.Command
	servers := g.servers()
	add := func(who Member) {
		want := lock.Member{ID: who.ID, Client: who.Client, Admin: who.Admin}
		commands = append(commands, lock.Command{Kind: lock.KindMember, Member: &want})
	}
	for _, who := range sorted(g.r.opts.Members) {
		if _, known := memberOf(m, who.ID); !known && who.ID != g.r.opts.NodeID && hasServer(servers, who.ID) {
			add(who)
		}
	}
	self := g.r.opts.Self
	if have, known := memberOf(m, self.ID); self.Client != "" && hasServer(servers, self.ID) && (!known || have.Client != self.Client || have.Admin != self.Admin) {
		add(self)
	}
	return commands
}

func hasServer(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
}

// raiseLevel raises the feature level when every member supports a newer one.
func (g *generation) raiseLevel(servers []raft.Server) {
	level := g.r.opts.Level
	for _, s := range servers {
		if string(s.ID) == g.r.opts.NodeID {
			continue
		}
		p, fresh := g.r.lastSeen(string(s.ID))
		if !fresh {
			return
		}
		level = min(level, p.peer.Supports)
	}
	var now uint32
	g.r.look(func(m *lock.Machine) { now = m.Level() })
	if level > now {
		g.r.log.Info("every member supports a newer feature level", "level", level)
		g.r.service.Order(lock.Command{Kind: lock.KindLevel, Level: level}, func(lock.Result, error) {})
	}
}

// memberOf returns a member's record.
func memberOf(m *lock.Machine, id string) (lock.Member, bool) {
	list := m.Members()
	i, ok := slices.BinarySearchFunc(list, id, func(e lock.Member, id string) int { return strings.Compare(e.ID, id) })
	if !ok {
		return lock.Member{}, false
	}
	return list[i], true
}

// member returns a member's addresses as the replicated state has them, or as this node
// is configured while that does not know them.
func (r *Replica) member(id string) Member {
	who := Member{ID: id}
	for _, m := range r.opts.Members {
		if m.ID == id {
			who = m
		}
	}
	r.look(func(m *lock.Machine) {
		if rec, ok := memberOf(m, id); ok {
			who.Client, who.Admin = rec.Client, rec.Admin
		}
	})
	return who
}

// IsRemoved tells whether a node was removed from the cluster, as far as this one knows.
func (r *Replica) IsRemoved(id string) (removed bool) {
	r.look(func(m *lock.Machine) {
		rec, ok := memberOf(m, id)
		removed = ok && rec.Removed
	})
	return removed
}
