package coretest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/core/service"
)

// Node is one node of a cluster: its disk, and the process that runs on it, or none.
type Node struct {
	Name string
	Disk *Disk

	cluster *Cluster
	founder bool
	serving atomic.Int64 // the number of its stay as a leader; 0 when it is none

	mu     sync.Mutex
	run    *run
	paused bool
}

// run is one process.
type run struct {
	node    *Node
	replica *replica.Replica
	service *service.Service

	mu    sync.Mutex
	conns map[*conn]struct{}
	dead  atomic.Bool
}

func (n *Node) raft() string   { return n.Name + ":5226" }
func (n *Node) client() string { return n.Name + ":5225" }

func (n *Node) member() replica.Member {
	return replica.Member{ID: n.Name, Raft: n.raft(), Client: n.client()}
}

func (n *Node) current() *run {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

// Replica returns the node's replica, nil when it does not run.
func (n *Node) Replica() *replica.Replica {
	if r := n.current(); r != nil {
		return r.replica
	}
	return nil
}

// Serves says whether the node serves clients.
func (n *Node) Serves() bool { return n.serving.Load() != 0 }

// Runs says whether the node's process is there.
func (n *Node) Runs() bool { return n.current() != nil }

// Start starts the node's process on what is on its disk, unless it runs.
func (n *Node) Start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run != nil {
		return
	}
	r := &run{node: n, conns: make(map[*conn]struct{})}
	var members []replica.Member
	if n.founder {
		members = n.cluster.members()
	}
	made, err := replica.New(replica.Options{
		NodeID: n.Name, Members: members, Self: n.member(),
		Timers:    n.cluster.config.Timers,
		Logger:    n.cluster.config.Logger.With("node", n.Name),
		Transport: n.cluster.transportOf(n),
		Stores:    n.openStores,
		Notes:     n.Disk.OpenNote(),
		Room:      n.Disk.HasRoom,
		Ask: func(ctx context.Context, m replica.Member) (replica.Peer, error) {
			return n.cluster.ask(ctx, n, m)
		},
		Fatal:    func(err error) { n.cluster.wg.Go(func() { n.crash(r) }) },
		Observer: observer{r},
	})
	if err != nil {
		panic("coretest: " + err.Error()) // no data folder, so nothing can fail
	}
	r.replica = made
	r.service = service.New(made, service.Config{Limits: service.DefaultLimits(), Clustered: true})
	n.run = r
	made.Start(r.service)
}

func (n *Node) openStores() (*replica.Stores, error) {
	closed, err := n.Disk.open()
	if err != nil {
		n.cluster.Ledger.Fault("%s: %v", n.Name, err)
		return nil, err
	}
	return &replica.Stores{Log: n.Disk.OpenLog(), Stable: n.Disk.OpenStable(), Snapshots: n.Disk.OpenSnapshots(), Close: closed}, nil
}

// Crash is kill -9: what was not synced is lost, and every connection breaks.
func (n *Node) Crash() { n.crash(n.current()) }

func (n *Node) crash(r *run) {
	n.mu.Lock()
	if r == nil || n.run != r {
		n.mu.Unlock()
		return
	}
	n.run = nil
	r.dead.Store(true)
	n.serving.Store(0)
	n.mu.Unlock()

	n.cluster.Network.leave(n.raft())
	n.Disk.Crash()
	r.mu.Lock()
	for c := range r.conns {
		c.sever()
	}
	r.mu.Unlock()
	// What is left of the process reaches nobody any more. Its goroutines end.
	n.cluster.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := r.replica.Close(ctx); err != nil {
			panic("coretest: a crashed node does not end: " + err.Error())
		}
		r.service.Close()
	})
}

// Pause is SIGSTOP, as far as a bubble has it: nothing reaches the node or leaves it, and its
// disk and its clients wait, until Resume. Its timers run on, as they would have run off in
// the moment it resumes.
func (n *Node) Pause() {
	n.mu.Lock()
	n.paused = true
	n.mu.Unlock()
	n.cluster.Network.Hold(n.raft())
	n.Disk.Hang()
}

// Resume is SIGCONT.
func (n *Node) Resume() {
	n.mu.Lock()
	was := n.paused
	n.paused = false
	r := n.run
	n.mu.Unlock()
	if !was {
		return
	}
	n.Disk.Answer()
	n.cluster.Network.Resume(n.raft())
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for c := range r.conns {
			c.catchUp()
		}
	}
}

func (n *Node) isPaused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

// Compact deletes the node's log behind its newest snapshot, so that a follower that lacks
// it must be sent the snapshot.
func (n *Node) Compact() {
	if r := n.Replica(); r != nil {
		n.Disk.compact(r.Status().Applied)
	}
}

// TransferTo asks the node, if it leads, to hand its leadership over; to anyone when the
// name is empty.
func (n *Node) TransferTo(name string, patience time.Duration) error {
	r := n.Replica()
	if r == nil {
		return errDown
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.TransferLeadership(ctx, name)
}

// describe says of a node what others ask.
func (r *run) describe() replica.Peer {
	self, st := r.replica.Self(), r.replica.Status()
	return replica.Peer{
		ID: self.ID, Client: self.Client, Admin: self.Admin, Storage: st.Storage, List: st.List,
		Voters: st.Voters, Applied: st.Applied, Supports: st.Supports,
	}
}

// observer passes on what one run does while it is alive.
type observer struct{ run *run }

func (o observer) Applied(index uint64, e *lock.Entry, out *lock.Outcome, _ time.Duration) {
	if !o.run.dead.Load() {
		o.run.node.cluster.Ledger.Applied(o.run.node.Name, index, e, out)
	}
}

func (o observer) Restored(m *lock.Machine) {
	if !o.run.dead.Load() {
		o.run.node.cluster.Ledger.Restored(o.run.node.Name, m)
	}
}

func (o observer) Committed(int, time.Duration)        {}
func (o observer) Stored(int, time.Duration)           {}
func (o observer) SnapshotStored(time.Duration, error) {}

func (o observer) StandingChanged(serving bool) {
	n := o.run.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if o.run.dead.Load() {
		return
	}
	stay := n.cluster.stays.Add(1)
	if !serving {
		stay = 0
	}
	n.serving.Store(stay)
}
