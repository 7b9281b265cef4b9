//go:build e2e

package main

import (
	"strconv"
	"testing"
	"time"
)

func decimal(token uint64) string { return strconv.FormatUint(token, 10) }

// A dead node is replaced: the new one joins without a vote, catches up, votes, and
// may lead; the old one's id is gone for good. Locks stay held all the time.
func TestADeadNodeIsReplaced(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 1)
	token := c.take("k", longLease)
	spare := c.nodes[3]
	dead := c.others(c.leader())[0]
	c.kill(dead)
	asked := c.leader()

	c.start(spare)
	c.mustOperate(asked, "members", "add", spare.id, "--raft", spare.raft, "--client", spare.client)
	c.awaitMembers(asked, "the new node in the list", func(m map[string]listedMember) bool {
		return len(m) == 4 && !m[dead.id].Reachable && m[spare.id].Reachable
	})
	c.mustOperate(asked, "members", "promote", spare.id)
	c.mustOperate(asked, "members", "remove", dead.id)
	c.awaitMembers(spare, "the new list", func(m map[string]listedMember) bool {
		return len(m) == 3 && m[spare.id].Voter
	})
	c.mustOperate(asked, "members", "transfer-leader", spare.id)
	eventually(t, "the new node leading", func() bool {
		addr, err := leaderAsToldBy(spare.client)
		return err == nil && addr == spare.client
	})
	if !c.isHeld("k") {
		t.Error("the lock is not held any longer")
	}
	if again := c.take("another", longLease); again <= token {
		t.Errorf("token %d after %d", again, token)
	}
	if r := c.operate(asked, "members", "add", dead.id, "--raft", dead.raft, "--client", dead.client); r.code == exitOK {
		t.Errorf("the removed id came back: %v", r)
	}

	// It votes: with the old leader dead it is one of the two that are needed.
	for _, n := range c.others(spare)[:1] {
		c.kill(n)
	}
	if !c.isHeld("k") {
		t.Error("the lock is not held any longer")
	}
}

// A client that knew only the old nodes is told about the new one.
func TestAClientFollowsToANodeThatItWasNotToldOf(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, 1)
	old, spare := c.nodes[0], c.nodes[1]
	broker := c.broker()
	c.start(spare)
	c.mustOperate(old, "members", "add", spare.id, "--raft", spare.raft, "--client", spare.client)
	c.mustOperate(old, "members", "promote", spare.id)
	c.mustOperate(old, "members", "transfer-leader", spare.id)
	eventually(t, "a ticket of the new leader", func() bool {
		ticket, err := broker.Acquire(t.Context(), "k", 5*time.Second, 5*time.Second, 0)
		if err != nil {
			return false
		}
		ticket.Close()
		return true
	})
	if addr, err := leaderAsToldBy(old.client); err != nil || addr != spare.client {
		t.Errorf("the old leader names %q (%v), want %s", addr, err, spare.client)
	}
}

// A leader that removes itself hands over first.
func TestTheLeaderCanBeRemoved(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 0)
	c.take("k", longLease)
	leader := c.leader()
	c.mustOperate(c.others(leader)[0], "members", "remove", leader.id)
	leader.log.await("removed")
	rest := c.others(leader)
	eventually(t, "a leader among the others", func() bool {
		addr, err := leaderAsToldBy(rest[0].client)
		return err == nil && (addr == rest[0].client || addr == rest[1].client)
	})
	if !c.isHeld("k") {
		t.Error("the lock is not held any longer")
	}
}

// What would leave the cluster without a majority is refused.
func TestARemovalThatLosesTheMajorityIsRefused(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 0)
	leader := c.leader()
	others := c.others(leader)
	dead, alive := others[0], others[1]
	c.kill(dead)
	c.awaitMembers(leader, "the dead node unreachable", func(m map[string]listedMember) bool { return !m[dead.id].Reachable })
	if r := c.operate(leader, "members", "remove", alive.id); r.code == exitOK {
		t.Fatalf("one of the two nodes that are left was removed: %v", r)
	}
	c.take("k", longLease)
	c.mustOperate(leader, "members", "remove", dead.id)
	c.take("another", longLease)
}

// A node that was removed while it was down does not disturb the others when it
// comes back: no election, no error of a client.
func TestARemovedNodeThatReturnsDisturbsNobody(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 0)
	leader := c.leader()
	removed := c.others(leader)[0]
	c.kill(removed)
	c.mustOperate(leader, "members", "remove", removed.id)
	broker := c.broker()
	c.start(removed)
	removed.log.await("removed")
	for range 30 { // some election time-outs
		ticket, err := broker.Acquire(t.Context(), "k", 5*time.Second, 5*time.Second, 0)
		if err != nil {
			t.Errorf("acquire: %v", err)
			continue
		}
		if err := ticket.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if addr, err := leaderAsToldBy(leader.client); err != nil || addr != leader.client {
		t.Errorf("the leader is %s (%v), and was %s", addr, err, leader.client)
	}
	// It knows it for good: another start needs nobody to tell it.
	if removed.cmd != nil {
		c.kill(removed)
	}
	c.start(removed)
	removed.log.await("removed")
}
