package coretest

import (
	"testing"
	"time"
)

// An isolated leader beside a node without a vote, which still answers it, serves nobody:
// the others elect, and what it grants meanwhile is nothing.
func TestAnIsolatedLeaderBesideANonVoter(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		leader := c.Leader()
		extra := c.Add("n4")
		if err := leader.Replica().AddMember(within(t, settleTime), extra.member()); err != nil {
			t.Fatal(err)
		}
		workFor(c, busyWork, func() {
			c.Run(2 * time.Second)
			for _, n := range c.nodes {
				if n != leader && n != extra {
					for _, alone := range []*Node{leader, extra} {
						c.Network.Cut(alone.raft(), n.raft())
						c.Network.Cut(n.raft(), alone.raft())
					}
				}
			}
			c.Run(3 * time.Second)
			if leader.Serves() {
				t.Error("the isolated leader serves on")
			}
			if other := c.Leader(); other == nil || other == leader {
				t.Error("nobody took over")
			}
			c.Network.Heal()
			c.Run(5 * time.Second)
		})
		serves(t, c)
	})
}

// A stale and a true release of a key that come together hand it to one waiter, the first.
func TestAStaleReleaseBesideATrueOne(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		for range 20 {
			holder, stale, first, second := c.NewClient(1), c.NewClient(2), c.NewClient(3), c.NewClient(4)
			old := grant(t, stale, "key-0", 10*time.Second, time.Second)
			c.Run(2 * time.Second) // its lease is over
			held := grant(t, holder, "key-0", 10*time.Second, 5*time.Second)
			for _, waiter := range []*Client{first, second} {
				go waiter.Acquire(within(t, settleTime), "key-0", 9*time.Second, 2*time.Second)
				c.Run(10 * time.Millisecond)
			}
			go stale.Release(within(t, settleTime), "key-0", old.Token)
			holder.Release(within(t, settleTime), "key-0", held.Token)
			c.Run(20 * time.Second)
			for _, client := range []*Client{holder, stale, first, second} {
				client.Close()
			}
		}
	})
}

// First start with nodes that come up minutes apart: they begin together, once.
func TestNodesThatComeUpMinutesApart(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		fresh := prepare(c.config)
		defer fresh.Close()
		for i, n := range fresh.nodes {
			if i > 0 {
				c.Run(3 * time.Minute)
				if fresh.Leader() != nil {
					t.Error("a cluster began without all of its members")
				}
			}
			n.Start()
		}
		if !fresh.AwaitReady(settleTime) {
			t.Error("the cluster did not begin when every member was there")
		}
	})
}

// A voter whose disk was emptied does not vote: it takes no part, also when another one is
// gone, and what was acknowledged is not forgotten.
func TestAnEmptiedVoterTakesNoPart(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		client := c.NewClient(1)
		defer client.Close()
		held := grant(t, client, "key-0", 0, 200*time.Second)
		leader := c.Leader()
		emptied := c.other(leader, client.random)
		emptied.Crash()
		emptied.Disk.erase()
		emptied.Start()
		c.Run(5 * time.Second)
		leader.Crash()
		c.Run(20 * time.Second)
		if n := c.Leader(); n != nil {
			t.Fatalf("%s was elected by a voter that had forgotten", n.Name)
		}
		leader.Start()
		c.Run(5 * time.Second)
		if o := client.Acquire(within(t, settleTime), "key-0", 0, time.Second); o == nil || o.Outcome != TimedOut {
			t.Errorf("%v, though it is held: %v", o, held)
		}
	})
}
