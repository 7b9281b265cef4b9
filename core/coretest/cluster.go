package coretest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/replica"
)

// closeTimeout bounds the end of a node's goroutines.
const closeTimeout = time.Minute

// Config is what a cluster is made of.
type Config struct {
	Seed   uint64
	Nodes  int
	Timers replica.Timers // DefaultTimers when zero
	Logger *slog.Logger   // nil for none
}

// Cluster is a whole cluster in one bubble.
type Cluster struct {
	Network *Network
	History *History
	Ledger  *Ledger

	config Config
	nodes  []*Node
	wg     sync.WaitGroup
	stays  atomic.Int64
}

// Start starts the nodes n1, n2, … of a new cluster. Close must end it.
func Start(c Config) *Cluster {
	cluster := prepare(c)
	for _, n := range cluster.nodes {
		n.Start()
	}
	return cluster
}

// prepare returns a new cluster whose nodes are not started.
func prepare(c Config) *Cluster {
	if c.Timers == (replica.Timers{}) {
		c.Timers = replica.DefaultTimers()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	cluster := &Cluster{Network: NewNetwork(c.Seed), History: NewHistory(), config: c}
	cluster.Ledger = NewLedger(cluster.History, cluster.durable)
	for i := range c.Nodes {
		cluster.nodes = append(cluster.nodes, cluster.newNode(fmt.Sprintf("n%d", i+1), true))
	}
	return cluster
}

func (c *Cluster) newNode(name string, founder bool) *Node {
	n := &Node{Name: name, Disk: NewDisk(c.config.Seed + uint64(len(c.nodes))), cluster: c, founder: founder}
	n.Disk.stored = c.Ledger.stored.note
	n.Disk.saved = func(index uint64, content []byte) { c.Ledger.Saved(name, index, content) }
	return n
}

// Add starts a further node, which is in no list of members yet.
func (c *Cluster) Add(name string) *Node {
	n := c.newNode(name, false)
	c.nodes = append(c.nodes, n)
	n.Start()
	return n
}

// Nodes returns the nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Node returns a node by its name or its client address, nil without one.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.nodes {
		if n.Name == name || n.client() == name {
			return n
		}
	}
	return nil
}

// Members returns the members at the first start.
func (c *Cluster) members() (list []replica.Member) {
	for _, n := range c.nodes {
		if n.founder {
			list = append(list, n.member())
		}
	}
	return list
}

// Leader returns a node that serves, nil without one. An old one that does not know that
// it is deposed comes last.
func (c *Cluster) Leader() (leader *Node) {
	var newest int64
	for _, n := range c.nodes {
		if stay := n.serving.Load(); stay > newest {
			leader, newest = n, stay
		}
	}
	return leader
}

// AwaitLeader returns the node that serves, or nil when none does in time.
func (c *Cluster) AwaitLeader(patience time.Duration) *Node {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n := c.Leader(); n != nil {
			return n
		}
	}
	return nil
}

// AwaitReady says whether every node that runs is ready in time.
func (c *Cluster) AwaitReady(patience time.Duration) bool {
	ready := func() bool {
		for _, n := range c.nodes {
			if r := n.Replica(); r != nil && !r.Status().Ready {
				return false
			}
		}
		return c.Leader() != nil
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ready() {
			return true
		}
	}
	return false
}

// AwaitOther returns a node that serves and is another one, or nil when none does in time.
func (c *Cluster) AwaitOther(than *Node, patience time.Duration) *Node {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n := c.Leader(); n != nil && n != than {
			return n
		}
	}
	return nil
}

// Isolate cuts a node off the others, both ways. The clients still reach it.
func (c *Cluster) Isolate(n *Node) {
	for _, other := range c.nodes {
		if other != n {
			c.Network.Cut(n.raft(), other.raft())
			c.Network.Cut(other.raft(), n.raft())
		}
	}
}

// Run lets the cluster run for so long, in the bubble's time.
func (c *Cluster) Run(d time.Duration) { time.Sleep(d) }

// durable says whether a majority of the founders has an entry on disk. Tests that change
// the members don't count on it.
func (c *Cluster) durable(index uint64, data []byte) error {
	var have, founders int
	for _, n := range c.nodes {
		if !n.founder {
			continue
		}
		founders++
		if n.Disk.Has(index, data) {
			have++
		}
	}
	if 2*have <= founders {
		return fmt.Errorf("only %d of %d have it on disk", have, founders)
	}
	return nil
}

// Settle mends everything and lets every node run.
func (c *Cluster) Settle() {
	c.Network.Heal()
	for _, n := range c.nodes {
		n.Resume()
		n.Disk.SetFull(false)
		n.Disk.Slow(0)
		n.Disk.Answer()
		n.Start()
	}
}

// Close ends everything and waits for it.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		n.Resume()
		n.Crash()
	}
	c.wg.Wait()
	c.Network.Close()
}

var errDown = errors.New("the node is down")

// ask is how one node asks another about itself, over the same network.
func (c *Cluster) ask(ctx context.Context, from *Node, m replica.Member) (replica.Peer, error) {
	for _, n := range c.nodes {
		if n.raft() != m.Raft {
			continue
		}
		if !c.Network.reaches(from.raft(), n.raft()) {
			<-ctx.Done()
			return replica.Peer{}, ctx.Err()
		}
		if r := n.current(); r != nil {
			return r.describe(), nil
		}
	}
	return replica.Peer{}, errDown
}

// transportOf makes a node's transport of one run.
func (c *Cluster) transportOf(n *Node) func(replica.Guard) (raft.Transport, error) {
	return func(g replica.Guard) (raft.Transport, error) { return c.Network.Join(n.raft(), g.MayVote), nil }
}
