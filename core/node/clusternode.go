package node

import (
	"context"
	"errors"
	"io"

	"github.com/ticketing-io/ticketing/core/control"
	"github.com/ticketing-io/ticketing/core/replica"
)

// clusterNode is a cluster's node as the control endpoints see it.
type clusterNode struct{ c *cluster }

// Status tells how the node stands.
func (n clusterNode) Status() control.Status {
	st := n.c.replica.Status()
	return control.Status{
		Self: peer(n.c.replica.Self()), Role: control.Role(st.Role), Ready: st.Ready, Why: st.Why,
		Leader: peer(st.Leader), Term: st.Term, Voters: st.Voters,
		Disk: control.Storage(st.Storage), List: st.List,
		LastTerm: st.LastTerm, Last: st.Last, Commit: st.Commit, Applied: st.Applied,
		Held: st.Held, Token: st.Next, Reign: st.Reign, Time: st.Time, Quiet: st.Quiet,
		Supports: st.Supports, Level: st.Level,
	}
}

func peer(m replica.Member) control.Peer {
	return control.Peer{ID: m.ID, Raft: m.Raft, Client: m.Client, Admin: m.Admin}
}

// Members returns every member.
func (n clusterNode) Members(context.Context) ([]control.Member, error) {
	list, err := n.c.replica.Members()
	if err != nil {
		return nil, n.class(err)
	}
	members := make([]control.Member, 0, len(list))
	for _, m := range list {
		members = append(members, control.Member{
			Peer: peer(m.Member), Voter: m.Voter, Leader: m.Leader, Reachable: m.Reachable, Why: m.Why,
			Applied: m.Applied, Lag: m.Lag, Level: m.Supports, Healthy: m.Healthy,
		})
	}
	return members, nil
}

// Add adds a member.
func (n clusterNode) Add(ctx context.Context, who control.Peer) error {
	return n.class(n.c.replica.AddMember(ctx, replica.Member{ID: who.ID, Raft: who.Raft, Client: who.Client, Admin: who.Admin}))
}

// Remove removes a member.
func (n clusterNode) Remove(ctx context.Context, id string) error {
	return n.class(n.c.replica.RemoveMember(ctx, id))
}

// Promote makes a member a voter.
func (n clusterNode) Promote(ctx context.Context, id string) error {
	return n.class(n.c.replica.PromoteMember(ctx, id))
}

// Transfer hands the leadership over.
func (n clusterNode) Transfer(ctx context.Context, id string) error {
	return n.class(n.c.replica.TransferLeadership(ctx, id))
}

// SaveSnapshot writes the replicated state.
func (n clusterNode) SaveSnapshot(ctx context.Context, w io.Writer) error {
	return n.class(n.c.replica.SaveSnapshot(ctx, w))
}

// RestoreSnapshot replaces it.
func (n clusterNode) RestoreSnapshot(ctx context.Context, r io.Reader, waive bool) error {
	return n.class(n.c.replica.RestoreSnapshot(ctx, r, waive))
}

// class says of an error of the replica whether anything may have happened.
func (n clusterNode) class(err error) error {
	var refusal *replica.Refusal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, replica.ErrUnknown):
		return control.Doubt("Look at the members, and try again.", "%w", err)
	case errors.Is(err, replica.ErrNotLeader):
		return control.Ask(peer(n.c.replica.Status().Leader))
	case errors.As(err, &refusal):
		return control.Refuse("", "%w", err)
	case errors.Is(err, replica.ErrNotFresh):
		return control.Refuse("Restore into a cluster that is new: its nodes with empty data folders.", "%w", err)
	case errors.Is(err, replica.ErrBadSnapshot):
		return control.Refuse("Take another file.", "%w", err)
	}
	return control.Doubt("Look at the members, and try again.", "%w", err)
}
