package replica

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The leader tells what its cluster is worth and how far each member is behind; the
// others tell when they heard of it last.
func TestStatsOfAWholeCluster(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		leader := m.leader(t)
		st := leader.Stats()
		if st.State != Leader || !st.HasLeader || !st.Serving || st.LastContact != 0 || st.Term == 0 || st.Applied == 0 {
			t.Errorf("the leader: %+v", st)
		}
		if st.Members != 3 || st.Voters != 3 || st.HealthyVoters != 3 || st.Quorum != 2 {
			t.Errorf("the leader counts %+v", st)
		}
		if len(st.Peers) != 2 || slices.ContainsFunc(st.Peers, func(p PeerLag) bool { return p.Lag > 0 || p.ID == leader.opts.NodeID }) {
			t.Errorf("the leader's peers: %v", st.Peers)
		}
		for _, n := range m.but(leader) {
			st := n.Stats()
			if st.State != Follower || !st.HasLeader || st.Serving || st.HealthyVoters != 0 || st.Quorum != 2 || len(st.Peers) != 0 {
				t.Errorf("a follower: %+v", st)
			}
			if st.LastContact > DefaultTimers().Heartbeat {
				t.Errorf("a follower has heard nothing for %v", st.LastContact)
			}
			if st.LeaderChanges != 1 {
				t.Errorf("a follower has seen %d leaders come, want 1", st.LeaderChanges)
			}
		}
	})
}

// A member that is gone is not healthy, and falls behind by what it said last.
func TestStatsOfAMemberThatIsGone(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		leader := m.leader(t)
		gone := m.but(leader)[0]
		gone.end(t)
		if st := gone.Stats(); st.State != Stopped || st.HasLeader || st.LastContact != 0 {
			t.Errorf("a node that has ended: %+v", st)
		}
		who := meshMember(gone.opts.NodeID)
		who.Admin = who.ID + ":3"
		if err := leader.AddMember(context.Background(), who); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * peerFresh)
		synctest.Wait()
		st := leader.Stats()
		if st.HealthyVoters != 2 || st.Voters != 3 {
			t.Errorf("the leader counts %d of %d voters as healthy, want 2 of 3", st.HealthyVoters, st.Voters)
		}
		for _, p := range st.Peers {
			if behind := p.Lag > 0; behind != (p.ID == who.ID) {
				t.Errorf("%s is %d behind; %s has ended", p.ID, p.Lag, who.ID)
			}
		}
	})
}

// Each leader that comes is counted, and a node that lost its cluster says for how long.
func TestStatsOfElections(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		first := m.leader(t)
		first.end(t)
		second := m.leader(t, first)
		time.Sleep(time.Second)
		synctest.Wait()
		for _, n := range m.but(first) {
			if st := n.Stats(); st.LeaderChanges != 2 || !st.HasLeader {
				t.Errorf("%s: %+v, want 2 leaders seen", n.opts.NodeID, st)
			}
		}
		second.end(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		last := slices.DeleteFunc(m.but(first), func(n *meshNode) bool { return n == second })[0]
		st := last.Stats()
		if st.HasLeader || st.Serving || st.State == Leader || st.LeaderChanges != 2 {
			t.Errorf("the last node: %+v", st)
		}
		if st.LastContact < time.Minute-time.Second || st.LastContact > time.Minute+time.Second {
			t.Errorf("it has heard nothing for %v, want about a minute", st.LastContact)
		}
	})
}
