package coretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Fault is one accident of the schedule. It is done to a node; what it returns undoes it.
type Fault struct {
	Name string
	Do   func(c *Cluster, n *Node, random *rand.Rand) (undo func())
}

// transferPatience bounds how long a leader is given to hand over.
const transferPatience = 2 * time.Second

// Faults are the accidents that a simulation has.
var Faults = []Fault{
	{"isolate", func(c *Cluster, n *Node, _ *rand.Rand) func() {
		c.Isolate(n)
		return c.Network.Heal
	}},
	{"cut one way from", func(c *Cluster, n *Node, random *rand.Rand) func() {
		c.Network.Cut(n.raft(), c.other(n, random).raft())
		return c.Network.Heal
	}},
	{"cut one way to", func(c *Cluster, n *Node, random *rand.Rand) func() {
		c.Network.Cut(c.other(n, random).raft(), n.raft())
		return c.Network.Heal
	}},
	{"slow and lossy links of", func(c *Cluster, n *Node, random *rand.Rand) func() {
		for _, other := range c.nodes {
			c.Network.Slow(n.raft(), other.raft(), time.Duration(1+random.IntN(60))*time.Millisecond)
			c.Network.Lossy(other.raft(), n.raft(), 0.05*random.Float64())
		}
		return c.Network.Heal
	}},
	{"crash", func(_ *Cluster, n *Node, _ *rand.Rand) func() {
		n.Crash()
		return n.Start
	}},
	{"crash all, beginning with", func(c *Cluster, n *Node, _ *rand.Rand) func() {
		n.Crash()
		for _, other := range c.nodes {
			other.Crash()
		}
		return func() {
			for _, other := range c.nodes {
				other.Start()
			}
		}
	}},
	{"slow disk of", func(_ *Cluster, n *Node, random *rand.Rand) func() {
		n.Disk.Slow(time.Duration(1+random.IntN(150)) * time.Millisecond)
		return func() { n.Disk.Slow(0) }
	}},
	{"hanging disk of", func(_ *Cluster, n *Node, _ *rand.Rand) func() {
		n.Disk.Hang()
		return n.Disk.Answer
	}},
	{"full disk of", func(_ *Cluster, n *Node, _ *rand.Rand) func() {
		n.Disk.SetFull(true)
		return func() { n.Disk.SetFull(false) }
	}},
	{"pause", func(_ *Cluster, n *Node, _ *rand.Rand) func() {
		n.Pause()
		return n.Resume
	}},
	{"transfer from", func(_ *Cluster, n *Node, _ *rand.Rand) func() {
		_ = n.TransferTo("", transferPatience) // one that does not lead refuses
		return func() {}
	}},
	{"compact all, and crash", func(c *Cluster, n *Node, _ *rand.Rand) func() {
		n.Crash()
		return func() {
			for _, other := range c.nodes {
				other.Compact()
			}
			n.Start()
		}
	}},
}

func (c *Cluster) other(n *Node, random *rand.Rand) *Node {
	for {
		if other := c.nodes[random.IntN(len(c.nodes))]; other != n {
			return other
		}
	}
}

// Schedule is when accidents happen.
type Schedule struct {
	Faults   []Fault
	MaxCalm  time.Duration // before each accident
	MaxLasts time.Duration // how long each lasts
}

// run lets one accident after the other happen until ctx ends, to the leader more often than
// to others, and tells of each. The last one is left for Settle to mend.
func (s Schedule) run(ctx context.Context, c *Cluster, random *rand.Rand, tell func(string)) {
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d) + 1)) }
	for ctx.Err() == nil {
		pause(ctx, upTo(s.MaxCalm))
		if ctx.Err() != nil {
			return
		}
		n := c.nodes[random.IntN(len(c.nodes))]
		if leader := c.Leader(); leader != nil && random.IntN(2) == 0 {
			n = leader
		}
		fault := s.Faults[random.IntN(len(s.Faults))]
		lasts := upTo(s.MaxLasts)
		tell(fmt.Sprintf("%12v: %s %s for %v", time.Since(c.History.began), fault.Name, n.Name, lasts))
		undo := fault.Do(c, n, random)
		pause(ctx, lasts)
		undo()
	}
}
