package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/wire"
)

// changePatience bounds a change of the members: raft must commit it.
const changePatience = 5 * time.Second

// MemberState is a member as the leader sees it.
type MemberState struct {
	Member
	Voter     bool
	Leader    bool
	Reachable bool
	Why       string        // why it is not reachable
	Applied   uint64        // as it said last
	Lag       uint64        // entries that it is behind
	Supports  uint32        // feature level
	Healthy   time.Duration // for how long it has answered and been close behind
}

// leading returns the generation when this node serves.
func (r *Replica) leading() (*generation, error) {
	g, err := r.current()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	if !r.serving.Load() {
		return nil, ErrNotLeader
	}
	return g, nil
}

// Members returns the members, ordered by id. ErrNotLeader where this node does not
// serve.
func (r *Replica) Members() ([]MemberState, error) {
	g, err := r.leading()
	if err != nil {
		return nil, err
	}
	applied := g.raft.AppliedIndex()
	var list []MemberState
	for _, s := range g.servers() {
		st := MemberState{Member: r.member(string(s.ID)), Voter: s.Suffrage == raft.Voter}
		st.Raft = string(s.Address)
		if st.ID == r.opts.NodeID {
			st.Leader, st.Reachable, st.Applied, st.Supports = true, true, applied, r.opts.Level
			list = append(list, st)
			continue
		}
		p, fresh := r.lastSeen(st.ID)
		st.Reachable, st.Applied, st.Supports = fresh && p.err == nil, p.peer.Applied, p.peer.Supports
		if p.err != nil {
			st.Why = p.err.Error()
		}
		if st.Applied < applied {
			st.Lag = applied - st.Applied
		}
		if fresh && !p.healthy.IsZero() {
			st.Healthy = time.Since(p.healthy)
		}
		list = append(list, st)
	}
	return sortedBy(list, func(m MemberState) string { return m.ID }), nil
}

// AddMember makes a node a non-voter, so that it can catch up; or gives a member other
// addresses. A removed id never comes back.
func (r *Replica) AddMember(ctx context.Context, who Member) error {
	g, done, err := r.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if r.IsRemoved(who.ID) {
		return refuse("%q was removed from the cluster, and a removed id never comes back: what it had acknowledged may be lost", who.ID)
	}
	record := lock.Member{ID: who.ID, Client: who.Client, Admin: who.Admin}
	if err := checkMember(record); err != nil {
		return err
	}
	servers := g.servers()
	known := hasServer(servers, who.ID)
	for _, s := range servers {
		if string(s.Address) == who.Raft && string(s.ID) != who.ID {
			return refuse("%s has the address %s", s.ID, who.Raft)
		}
	}
	if !known && len(servers) >= lock.MaxMembers {
		return refuse("there are %d members, the most there can be", len(servers))
	}
	var f raft.IndexFuture
	if known && g.votes(who.ID) {
		f = g.raft.AddVoter(raft.ServerID(who.ID), raft.ServerAddress(who.Raft), 0, changePatience)
	} else {
		f = g.raft.AddNonvoter(raft.ServerID(who.ID), raft.ServerAddress(who.Raft), 0, changePatience)
	}
	if err := await(ctx, f); err != nil {
		return fmt.Errorf("add %q: %w", who.ID, err)
	}
	return r.order(ctx, lock.Command{Kind: lock.KindMember, Member: &record})
}

// checkMember refuses what can't be replicated of a member, or can't be told to clients
// (docs/PROTOCOL.md, section 2).
func checkMember(m lock.Member) error {
	switch n := max(len(m.ID), len(m.Admin)); {
	case m.ID == "" || n > lock.MaxMemberText:
		return refuse("an id, and addresses of at most %d bytes, are needed", lock.MaxMemberText)
	case len(m.Client) > wire.MaxAddr || strings.ContainsAny(m.Client, " \r\n"):
		return refuse("an address for clients has at most %d bytes, and no space or line break", wire.MaxAddr)
	}
	return nil
}

// change begins a change of the members, where this node serves: it waits until no other
// one is under way, whose checks would not see this one. done ends it.
func (r *Replica) change(ctx context.Context) (g *generation, done func(), err error) {
	if g, err = r.leading(); err != nil {
		return nil, nil, err
	}
	select {
	case r.changing <- struct{}{}:
		return g, r.changed, nil
	case <-ctx.Done():
		return nil, nil, refuse("another change of the members is under way")
	}
}

func (r *Replica) changed() { <-r.changing }

// votes tells whether a member has a vote.
func (g *generation) votes(id string) bool {
	for _, s := range g.servers() {
		if string(s.ID) == id {
			return s.Suffrage == raft.Voter
		}
	}
	return false
}

// RemoveMember removes a member for good. It refuses to take away a voter when the rest
// would have no healthy majority.
func (r *Replica) RemoveMember(ctx context.Context, id string) error {
	g, done, err := r.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	servers := g.servers()
	if !hasServer(servers, id) {
		return refuse("%q is no member", id)
	}
	if g.votes(id) {
		voters, healthy := 0, 0
		for _, s := range servers {
			if s.Suffrage == raft.Voter && string(s.ID) != id {
				voters++
				if r.isHealthy(string(s.ID)) {
					healthy++
				}
			}
		}
		switch {
		case voters == 0:
			return refuse("%q is the last voter: without it there is no cluster", id)
		case healthy < voters/2+1:
			return refuse("without %q only %d of %d voters would be healthy, and %d are needed: the cluster would stand still", id, healthy, voters, voters/2+1)
		}
	}
	if err := await(ctx, g.raft.RemoveServer(raft.ServerID(id), 0, changePatience)); err != nil {
		return fmt.Errorf("remove %q: %w", id, err)
	}
	if id == r.opts.NodeID {
		return nil // the next leader marks it as removed
	}
	if err := r.order(ctx, lock.Command{Kind: lock.KindMember, Member: &lock.Member{ID: id, Removed: true}}); err != nil {
		return err
	}
	if r.opts.Link != nil {
		r.opts.Link.Drop(id)
	}
	return nil
}

// PromoteMember makes a non-voter a voter when it is healthy.
func (r *Replica) PromoteMember(ctx context.Context, id string) error {
	g, done, err := r.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, s := range g.servers() {
		if string(s.ID) != id {
			continue
		}
		if s.Suffrage == raft.Voter {
			return nil
		}
		if !r.isHealthy(id) {
			return refuse("%q has not caught up, or does not answer: as a voter it would hold the others up", id)
		}
		if err := await(ctx, g.raft.AddVoter(s.ID, s.Address, 0, changePatience)); err != nil {
			return fmt.Errorf("promote %q: %w", id, err)
		}
		return nil
	}
	return refuse("%q is no member", id)
}

// TransferLeadership hands the leadership to a voter, or to the one that is most up to
// date when id is empty.
func (r *Replica) TransferLeadership(ctx context.Context, id string) error {
	g, err := r.leading()
	if err != nil {
		return err
	}
	if id == r.opts.NodeID {
		return nil
	}
	if id == "" {
		heirs := g.heirs()
		if len(heirs) == 0 {
			return refuse("no other voter answers")
		}
		return await(ctx, g.raft.LeadershipTransferToServer(heirs[0].ID, heirs[0].Address))
	}
	for _, s := range g.servers() {
		if string(s.ID) != id {
			continue
		}
		if s.Suffrage != raft.Voter {
			return refuse("%q has no vote", id)
		}
		if !r.isHealthy(id) { // raft would take nothing else until it answered
			return refuse("%q does not answer, or is far behind", id)
		}
		return await(ctx, g.raft.LeadershipTransferToServer(s.ID, s.Address))
	}
	return refuse("%q is no member", id)
}

// HandOver gives the leadership away, if this node has it and another can take it, and
// returns when the service knows the new leader, or ctx ends.
func (r *Replica) HandOver(ctx context.Context) {
	g, err := r.leading()
	if err != nil {
		return
	}
	heirs := g.heirs()
	if len(heirs) == 0 {
		r.log.Info("no other voter answers, so the leadership is not handed over")
		return
	}
	for _, s := range heirs {
		if err = await(ctx, g.raft.LeadershipTransferToServer(s.ID, s.Address)); err == nil || ctx.Err() != nil {
			break
		}
		r.log.Info("the leadership could not be handed over", "to", string(s.ID), "error", err)
	}
	for err == nil && ctx.Err() == nil && g.leaderClient() == "" {
		select {
		case <-time.After(handOverLook):
		case <-ctx.Done():
		}
	}
}

// heirs returns the other voters that answer, the most up to date first. Raft would choose
// by index alone, and wait for one that is down.
func (g *generation) heirs() []raft.Server {
	var list []raft.Server
	applied := func(s raft.Server) uint64 {
		p, _ := g.r.lastSeen(string(s.ID))
		return p.peer.Applied
	}
	g.r.mu.Lock()
	asked := len(g.r.peers) > 0
	g.r.mu.Unlock()
	for _, s := range g.servers() {
		p, fresh := g.r.lastSeen(string(s.ID))
		answers := fresh && p.err == nil || !asked // none was asked: it leads for less than a second
		if s.Suffrage == raft.Voter && string(s.ID) != g.r.opts.NodeID && answers {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b raft.Server) int { return cmp.Compare(applied(b), applied(a)) })
	return list
}

// handOverLook is the time between two looks at who leads.
const handOverLook = 5 * time.Millisecond

// await waits for a future of raft, or for the context.
func await(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		switch {
		case err == nil:
			return nil
		case errors.Is(err, raft.ErrNotLeader):
			return fmt.Errorf("%w: %w", ErrNotLeader, err)
		case certainlyNot(err):
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
}

// order has the service put a command into its next entry, and waits for the outcome.
func (r *Replica) order(ctx context.Context, cmd lock.Command) error {
	type outcome struct {
		result lock.Result
		err    error
	}
	done := make(chan outcome, 1)
	r.service.Order(cmd, func(res lock.Result, err error) { done <- outcome{res, err} })
	select {
	case o := <-done:
		switch {
		case o.err != nil:
			return fmt.Errorf("%w: %w", ErrUnknown, o.err)
		case o.result.Status != lock.Done:
			return refuse("the cluster's state does not take that change")
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
}
