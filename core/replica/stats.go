package replica

import (
	"time"

	"github.com/hashicorp/raft"
)

// Stats is raft at a glance, for whoever looks every few seconds.
type Stats struct {
	State     Role // Follower, Candidate, Leader or Stopped; a Follower may have no vote
	HasLeader bool // this node knows who leads
	Serving   bool
	Term      uint64

	Last, Commit, Applied uint64 // indices

	Members, Voters int // in the newest configuration that the node knows
	HealthyVoters   int // of them, those that answer and are close behind; 0 where this node does not serve
	Quorum          int // voters that must store an entry; 0 without voters

	LastContact   time.Duration // since the leader's last word, or since raft began; 0 on the leader and without raft
	LeaderChanges uint64        // how often this node came to know a leader since the process began
	// Peers are the other members that have answered since this node serves.
	Peers []PeerLag
}

// PeerLag is how far another member is behind.
type PeerLag struct {
	ID  string
	Lag uint64 // entries, by what it said last, though it may not answer any more
}

// Stats returns raft at a glance. It asks nobody, waits for nothing that raft does, and
// does not look at the machine.
func (r *Replica) Stats() Stats {
	st := Stats{State: Stopped, LeaderChanges: r.leaderChanges.Load()}
	r.mu.Lock()
	g := r.generation
	r.mu.Unlock()
	if g == nil {
		return st
	}
	g.count(&st)
	return st
}

func (g *generation) count(st *Stats) {
	_, leader := g.raft.LeaderWithID()
	st.HasLeader = leader != ""
	st.Term, st.Last, st.Commit, st.Applied = g.raft.CurrentTerm(), g.raft.LastIndex(), g.raft.CommitIndex(), g.raft.AppliedIndex()
	st.State = roles[g.raft.State()]
	st.Serving = st.State == Leader && g.r.serving.Load()
	if st.State == Follower || st.State == Candidate {
		last := g.raft.LastContact()
		if last.IsZero() {
			last = g.began
		}
		st.LastContact = time.Since(last)
	}
	for _, s := range g.servers() {
		st.Members++
		if s.Suffrage == raft.Voter {
			st.Voters++
			if st.Serving && g.r.isHealthy(string(s.ID)) {
				st.HealthyVoters++
			}
		}
		if st.Serving {
			g.addLag(st, string(s.ID))
		}
	}
	if st.Voters > 0 {
		st.Quorum = st.Voters/2 + 1
	}
}

// addLag adds how far a member is behind, if it has answered.
func (g *generation) addLag(st *Stats, id string) {
	s, _ := g.r.lastSeen(id)
	if s.at.IsZero() {
		return
	}
	peer := PeerLag{ID: id}
	if applied := s.peer.Applied; applied < st.Applied {
		peer.Lag = st.Applied - applied
	}
	st.Peers = append(st.Peers, peer)
}

// roles is what raft's states are called here.
var roles = map[raft.RaftState]Role{
	raft.Follower: Follower, raft.Candidate: Candidate, raft.Leader: Leader, raft.Shutdown: Stopped,
}
