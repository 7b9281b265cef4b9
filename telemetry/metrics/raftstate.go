package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ticketing-io/ticketing/core/replica"
)

// raftState reads how raft stands.
type raftState struct {
	readings
	of *Metrics

	state, hasLeader, serving, term    reading
	commit, applied, last              reading
	members, voters, healthy, quorum   reading
	lag, lastContact, leadershipChange reading
}

func newRaftState(m *Metrics) *raftState {
	s := &raftState{of: m}
	s.state = s.gauge("ticketing_raft_state", "1 for what the node is in raft, 0 for what it is not.", "state")
	s.hasLeader = s.gauge("ticketing_raft_has_leader", "Whether the node knows a leader.")
	s.serving = s.gauge("ticketing_raft_serving", "Whether the node leads and serves clients.")
	s.term = s.gauge("ticketing_raft_term", "Raft's term: each election raises it.")
	s.commit = s.gauge("ticketing_raft_commit_index", "Index of the last entry that the node knows as committed.")
	s.applied = s.gauge("ticketing_raft_applied_index", "Index of the last entry that was given to the lock table.")
	s.last = s.gauge("ticketing_raft_last_index", "Index of the last entry in the node's log.")
	s.members = s.gauge("ticketing_raft_members", "Members of the cluster, as the node knows it.")
	s.voters = s.gauge("ticketing_raft_voters", "Members that vote.")
	s.healthy = s.gauge("ticketing_raft_healthy_voters", "Voters that answer and are close behind, itself included; 0 where the node does not serve.")
	s.quorum = s.gauge("ticketing_raft_quorum", "Voters that must store an entry.")
	s.lag = s.gauge("ticketing_raft_peer_lag_entries", "Entries that another member is behind, by what it said last; only where the node serves.", "peer")
	s.lastContact = s.gauge("ticketing_raft_last_contact_seconds", "Since the leader's last word; 0 on the leader.")
	s.leadershipChange = s.counter("ticketing_raft_leader_changes_total", "How often the node came to know a leader: each election is one, the same leader's too.")
	return s
}

// states are what a node may be in raft.
var states = []replica.Role{replica.Follower, replica.Candidate, replica.Leader, replica.Stopped}

// Collect reads the replica.
func (s *raftState) Collect(ch chan<- prometheus.Metric) {
	var st replica.Stats
	if read := s.of.sources.Load().Replica; read != nil {
		st = read()
	}
	for _, state := range states {
		s.state(ch, number(st.State == state), string(state))
	}
	s.hasLeader(ch, number(st.HasLeader))
	s.serving(ch, number(st.Serving))
	s.term(ch, float64(st.Term))
	s.commit(ch, float64(st.Commit))
	s.applied(ch, float64(st.Applied))
	s.last(ch, float64(st.Last))
	s.members(ch, float64(st.Members))
	s.voters(ch, float64(st.Voters))
	s.healthy(ch, float64(st.HealthyVoters))
	s.quorum(ch, float64(st.Quorum))
	for _, p := range st.Peers {
		s.lag(ch, float64(p.Lag), p.ID)
	}
	s.lastContact(ch, st.LastContact.Seconds())
	s.leadershipChange(ch, float64(st.LeaderChanges))
}
