package control

import (
	"context"
	"io"
	"time"
)

// Node is what the endpoints ask of the node that they belong to. Each method may be
// called from any goroutine, several at once, and returns soon after its context ends.
// Its errors should be *Error; any other counts as Unknown, since nothing says that it
// did not happen.
type Node interface {
	// Status tells how the node stands. It waits for nobody.
	Status() Status
	// Members returns every member as the leader sees it, ordered by id. Elsewhere
	// when this node does not lead; so does every method below.
	Members(ctx context.Context) ([]Member, error)
	// Add makes a node a non-voting member, or gives the member of that id other
	// addresses. Refused for an id that was removed before: it never comes back.
	Add(ctx context.Context, who Peer) error
	// Remove removes a member for good. Refused when the cluster would lose its quorum
	// by it, with the reason, or when there is no such member.
	Remove(ctx context.Context, id string) error
	// Promote makes a non-voter a voter. Refused while it is behind or unhealthy. Of
	// one that votes already it is a success.
	Promote(ctx context.Context, id string) error
	// Transfer hands the leadership to a voter, or to the one that is most up to date
	// when id is empty.
	Transfer(ctx context.Context, id string) error
	// SaveSnapshot writes the replicated state, with everything that was acknowledged
	// before the call, as a file whose own checksum ends it.
	SaveSnapshot(ctx context.Context, w io.Writer) error
	// RestoreSnapshot reads a snapshot to its end, checks all of it, and only then
	// replaces the cluster's state. Refused for a faulty file and when the cluster has
	// granted anything. waive leaves out the quiet period, in which nothing is granted.
	RestoreSnapshot(ctx context.Context, r io.Reader, waive bool) error
}

// Peer is a node by its id and addresses, each host:port.
type Peer struct {
	ID     string `json:"id"`
	Raft   string `json:"raft"`            // for the other nodes, and for this package
	Client string `json:"client"`          // what clients are told
	Admin  string `json:"admin,omitempty"` // may be empty
}

// Role is a node's part in its cluster at the moment.
type Role string

// The roles.
const (
	Leader    Role = "leader"
	Follower  Role = "follower"
	Candidate Role = "candidate"
	NonVoter  Role = "nonvoter" // follows, but has no vote
	Removed   Role = "removed"  // was a member, and knows that it was removed
	Waiting   Role = "waiting"  // knows no cluster yet
	Stopped   Role = "stopped"  // raft does not run: its disk failed, or the node is stopping
)

// Storage is what a node has on its disk, for the first start of a cluster.
type Storage string

// What a node may have.
const (
	Empty    Storage = "empty"    // neither a note nor state
	Prepared Storage = "prepared" // noted that every member was there, empty or prepared
	HasState Storage = "state"    // a log or a snapshot
)

// Status is how one node stands, as it says itself.
type Status struct {
	Self   Peer     `json:"node"` // its id and addresses, as it is configured
	Role   Role     `json:"role"`
	Ready  bool     `json:"ready"`            // it serves, or knows who does
	Why    string   `json:"why,omitempty"`    // why it is not ready, and what to do
	Leader Peer     `json:"leader,omitzero"`  // zero while none is known
	Term   uint64   `json:"term"`             // raft's
	Voters []string `json:"voters,omitempty"` // ids, in the newest configuration that it knows

	Disk Storage `json:"disk"`
	List string  `json:"list,omitempty"` // what its configured list of members comes to, to be compared

	// LastTerm and Last are those of the last entry in the log on its disk: of two logs the
	// one with the higher term is newer, and then the longer one.
	LastTerm uint64 `json:"last_term"`
	Last     uint64 `json:"last_index"`
	Commit   uint64 `json:"commit_index"`
	Applied  uint64 `json:"applied_index"`

	Held  int           `json:"held"`               // keys held, in the state that is applied
	Token uint64        `json:"next_token,string"`  // the next fencing token; text, since it may be beyond 2^53
	Reign uint64        `json:"reign"`              //
	Time  time.Duration `json:"time_ns"`            // replicated time
	Quiet time.Duration `json:"quiet_ns,omitempty"` // for how long nothing is granted yet, after a restore or a recovery

	Supports uint32 `json:"supports_level"` // the newest feature level that its program knows
	Level    uint32 `json:"level"`          // the cluster's
}

// Member is one member of the cluster, as its leader sees it.
type Member struct {
	Peer
	Voter     bool   `json:"voter"`
	Leader    bool   `json:"leader"`
	Reachable bool   `json:"reachable"`     // it answered lately
	Why       string `json:"why,omitempty"` // why it is not reachable, or not ready

	Applied uint64 `json:"applied_index"` // as it said last
	Lag     uint64 `json:"lag"`           // entries that it is behind the leader's commit
	Level   uint32 `json:"supports_level"`
	// Healthy is for how long it has been reachable and close behind; 0 when it is not.
	// It is a duration, since the clocks of nodes differ.
	Healthy time.Duration `json:"healthy_ns"`
}
