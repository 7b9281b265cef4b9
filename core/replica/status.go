package replica

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

// Role is a node's part in its cluster.
type Role string

// The roles.
const (
	Leader    Role = "leader" // and serves, or is about to
	Follower  Role = "follower"
	Candidate Role = "candidate"
	NonVoter  Role = "nonvoter"
	Removed   Role = "removed"
	Waiting   Role = "waiting" // for its cluster's first start, or to be counted in
	Stopped   Role = "stopped" // raft does not run
)

// Status is how a node stands.
type Status struct {
	Role    Role
	Ready   bool   // it serves, or knows who does
	Why     string // why it is not ready
	Leader  Member // zero while none is known
	Term    uint64
	Voters  []string // ids, in the newest configuration that the node knows
	Storage Storage
	List    string // what its configured list of members comes to

	LastTerm              uint64 // of the last entry of its log: with Last it says whose log is newer
	Last, Commit, Applied uint64 // indices

	Held     int
	Next     uint64 // the next token
	Reign    uint64
	Time     time.Duration // replicated
	Quiet    time.Duration // how long nothing is granted yet
	Level    uint32        // the cluster's feature level
	Supports uint32        // this program's
}

// Status returns how the node stands. It waits for nobody.
func (r *Replica) Status() Status {
	r.mu.Lock()
	g, why := r.generation, r.why
	st := Status{Role: Waiting, Storage: r.storage, List: listDigest(r.opts.Members), Supports: r.opts.Level}
	if r.note.Removed {
		st.Role = Removed
	}
	r.mu.Unlock()
	r.look(func(m *lock.Machine) {
		st.Held, st.Next, st.Reign, st.Time, st.Level = m.Len(), m.Next(), m.Reign(), m.Now(), m.Level()
		if until, ok := m.QuietUntil(); ok {
			st.Quiet = until - m.Now()
		}
	})
	if g == nil {
		st.Why = errNotStarted.Error()
		if why != nil {
			st.Why = why.Error()
			if st.Role != Removed {
				st.Role = Stopped
			}
		}
		return st
	}
	g.describe(&st)
	return st
}

func (g *generation) describe(st *Status) {
	st.Term, st.Last, st.Commit, st.Applied = g.raft.CurrentTerm(), g.raft.LastIndex(), g.raft.CommitIndex(), g.raft.AppliedIndex()
	st.LastTerm, _ = strconv.ParseUint(g.raft.Stats()["last_log_term"], 10, 64) // raft tells it nowhere else
	voter := false
	addr, id := g.raft.LeaderWithID()
	for _, s := range g.servers() {
		if s.ID == id {
			addr = s.Address // what it says of itself may be what it listens on
		}
		if s.Suffrage == raft.Voter {
			st.Voters = append(st.Voters, string(s.ID))
			voter = voter || string(s.ID) == g.r.opts.NodeID
		}
	}
	slices.Sort(st.Voters)
	switch state := g.raft.State(); {
	case state == raft.Leader:
		st.Role = Leader
	case state == raft.Candidate:
		st.Role = Candidate
	case state == raft.Shutdown:
		st.Role, st.Why = Stopped, "raft has ended"
		return
	case len(st.Voters) == 0:
		st.Role = Waiting
	case voter:
		st.Role = Follower
	default:
		st.Role = NonVoter
	}
	if id != "" {
		st.Leader = g.r.member(string(id))
		st.Leader.Raft = string(addr)
	}
	switch {
	case st.Role == Leader:
		if st.Ready = g.r.serving.Load(); !st.Ready {
			st.Why = "it leads and does not serve yet"
		}
	case id == "":
		st.Why = "no leader is known"
	case st.Leader.Client == "":
		st.Why = "the leader's address for clients is not known yet"
	default:
		st.Ready = true
	}
}

func sortedBy[T any](list []T, name func(T) string) []T {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return list
}

// Self returns this node's own addresses, as it is configured.
func (r *Replica) Self() Member {
	self := r.opts.Self
	self.ID = r.opts.NodeID
	return self
}
