package replica

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/link"
	"github.com/ticketing-io/ticketing/core/lock"
)

// Timers are raft's, and how much log there may be behind a snapshot.
type Timers struct {
	Heartbeat   time.Duration // a follower that hears nothing for so long, to twice of it, calls an election
	Election    time.Duration // a candidate tries again after so long, to twice of it
	LeaderLease time.Duration // a leader that reaches no majority for so long steps down; at most Heartbeat
	// Snapshots are made when SnapshotThreshold entries have been applied since the last
	// one, looked at every SnapshotInterval to twice of it. Together they bound the log
	// behind a snapshot, and so how long a restart takes.
	SnapshotInterval  time.Duration
	SnapshotThreshold uint64
}

// DefaultTimers elect a new leader within about a second (DESIGN.md).
func DefaultTimers() Timers {
	return Timers{
		Heartbeat: 500 * time.Millisecond, Election: 500 * time.Millisecond, LeaderLease: 250 * time.Millisecond,
		SnapshotInterval: 10 * time.Second, SnapshotThreshold: 4096,
	}
}

// trailingLogs is how many entries stay behind a snapshot, so that a follower that was
// away for a moment needs no snapshot: at a full 2,500 entries a second about three
// seconds' worth.
const trailingLogs = 8192

// Member is a node of the cluster by its addresses, each host:port.
type Member struct {
	ID     string
	Raft   string
	Client string
	Admin  string // may be empty
}

// Peer is what another node says of itself when it is asked.
type Peer struct {
	ID       string
	Storage  Storage
	List     string   // what its configured list of members comes to (see listDigest)
	Voters   []string // ids of the voters that it knows
	Applied  uint64   // index of the last entry that it applied
	Supports uint32   // newest feature level
	Client   string   // its addresses as it is configured
	Admin    string
}

// Options is what a Replica is made of.
type Options struct {
	NodeID  string
	DataDir string
	// Members are the members at the cluster's first start, this node among them; one
	// that joins a running cluster is in none, or in a list without effect.
	Members []Member
	// Self is this node's own addresses.
	Self   Member
	Timers Timers
	Logger *slog.Logger
	// Link carries raft's streams.
	Link *link.Link
	// Transport returns the transport of a generation, which closes it; nil for the
	// link's.
	Transport func(Guard) (raft.Transport, error)
	// Stores opens what is on disk, and Notes keeps the node's note; nil for the data
	// folder's.
	Stores func() (*Stores, error)
	Notes  Notes
	// Room says whether the disk has room to go on after it was full; nil for the data folder's.
	Room func() bool
	// Ask asks another node about itself. It returns when ctx ends at the latest.
	Ask func(ctx context.Context, m Member) (Peer, error)
	// Fatal is told why the node can't go on and must not: the process is expected to
	// end. It must not wait for the Replica.
	Fatal func(error)
	// Observer may be nil.
	Observer Observer
	// Level is the newest feature level that this node supports; 0 is lock.Level.
	Level uint32
}

// Observer is told what the replica does. It must not block and must not call the
// replica.
type Observer interface {
	// Applied: an entry took effect on this node, which took the machine so long. Neither
	// entry nor outcome may be kept.
	Applied(index uint64, e *lock.Entry, out *lock.Outcome, took time.Duration)
	// Restored: the machine's state was replaced by a snapshot.
	Restored(m *lock.Machine)
	// Committed: an entry of this node was committed and applied, so long after it was proposed.
	Committed(commands int, took time.Duration)
	// Stored: the log store took so long for so many entries.
	Stored(entries int, took time.Duration)
	// SnapshotStored: a snapshot, its own or the leader's, is on disk so long after it was
	// begun; or the disk failed.
	SnapshotStored(took time.Duration, err error)
	// StandingChanged: this node serves, or does not.
	StandingChanged(serving bool)
}

// Service is what a Replica tells of its standing and its entries. core/service has it.
type Service interface {
	// Now returns the service's time: entries are sealed at it.
	Now() time.Duration
	Follow(leader string)
	Elected()
	Lead(self string)
	Applied(*lock.Outcome)
	Lost()
	Refused()
	Gathered() int
	Next()
	Order(cmd lock.Command, done func(lock.Result, error))
}
