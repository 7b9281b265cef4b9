//go:build e2e

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// longLease outlasts any test here.
const longLease = 250 * time.Second

// Nodes that come up one after the other begin one cluster, once all are there.
func TestNodesThatStartApartBeginOneCluster(t *testing.T) {
	t.Parallel()
	c := layOut(t, 3, 0)
	for i, n := range c.nodes {
		c.start(n)
		if i == len(c.nodes)-1 {
			break
		}
		time.Sleep(2 * time.Second)
		for _, early := range c.nodes[:i+1] {
			if addr, err := leaderAsToldBy(early.client); err == nil {
				t.Errorf("%s names %s as its leader before all are there", early.id, addr)
			}
			early.log.await(c.nodes[2].id) // it says who is waited for
		}
	}
	first := c.take("k", longLease)
	if !c.isHeld("k") {
		t.Error("the lock is not held")
	}
	if again := c.take("another", longLease); again <= first {
		t.Errorf("token %d after %d", again, first)
	}
}

// A node that is killed in the middle of the first start finds into the cluster.
func TestANodeKilledDuringTheFirstStartJoins(t *testing.T) {
	t.Parallel()
	c := layOut(t, 3, 0)
	for _, n := range c.nodes {
		c.start(n)
	}
	c.nodes[0].log.await("prepared")
	c.kill(c.nodes[0])
	time.Sleep(time.Second)
	c.start(c.nodes[0])
	for _, n := range c.nodes {
		c.awaitReady(n)
	}
	c.take("k", longLease)
}

// Starting with a list of members on a node that has state begins nothing anew.
func TestAllNodesRestartedKeepTheirLocks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 0)
	token := c.take("k", longLease)
	for _, n := range c.nodes {
		c.kill(n)
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	c.leader()
	if !c.isHeld("k") {
		t.Error("the lock was forgotten")
	}
	if again := c.take("another", longLease); again <= token {
		t.Errorf("token %d after %d", again, token)
	}
	if r := ticketing(t, c.env(), "release", "k", decimal(token)); r.code != exitOK {
		t.Errorf("a release by the token from before: %v", r)
	}
}

// Three nodes that stop in an orderly way, one after the other, hand over what they
// lead: clients meet no error but busy.
func TestARollingRestartLosesNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 0)
	token := c.take("k", longLease)
	for _, n := range c.nodes {
		c.stop(n)
		if !c.isHeld("k") {
			t.Fatalf("after the stop of %s the lock is not held", n.id)
		}
		c.start(n)
		c.awaitReady(n)
	}
	if r := ticketing(t, c.env(), "release", "k", decimal(token)); r.code != exitOK {
		t.Errorf("release: %v", r)
	}
}

func TestAClusterOfOneKeepsItsLocksOverAKill(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, 0)
	n := c.nodes[0]
	token := c.take("k", longLease)
	c.kill(n)
	c.start(n)
	c.awaitReady(n)
	if !c.isHeld("k") {
		t.Error("the lock was forgotten")
	}
	if again := c.take("another", longLease); again <= token {
		t.Errorf("token %d after %d", again, token)
	}
}

// A voter that has forgotten what it acknowledged must not help to elect a leader
// that does not have it either.
func TestAnEmptiedVoterHasNoVote(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 0)
	leader := c.leader()
	emptied := c.others(leader)[0]
	c.kill(emptied)
	c.take("k", longLease) // that only the two others have
	if err := os.RemoveAll(emptied.dir); err != nil {
		t.Fatal(err)
	}
	c.start(emptied)
	emptied.log.await("its data is gone")

	c.kill(leader)
	if r := ticketing(t, c.env(), "acquire", "k", "--wait", "4s"); r.code == exitOK {
		t.Fatal("a node that forgot the lock elected a leader, and the lock was granted twice")
	}
	c.start(leader)
	c.leader()
	if !c.isHeld("k") {
		t.Error("the lock is not held any longer")
	}
}

// The data folder of a node that runs is nobody else's.
func TestTwoProcessesNeverShareADataFolder(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, 0)
	n := c.nodes[0]
	second := []string{"serve", "--listen", "127.0.0.1:0", "--cluster-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}
	for i := 0; i < len(n.flags); i += 2 {
		if flag := n.flags[i]; !strings.HasSuffix(flag, "listen") {
			second = append(second, flag, n.flags[i+1])
		}
	}
	r := programResult(t, nil, second...)
	if r.code != exitError || !strings.Contains(r.stderr, "data folder") {
		t.Errorf("%v", r)
	}
	c.take("k", longLease)
}
