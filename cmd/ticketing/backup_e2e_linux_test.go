//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// waiveQuiet leaves out the quiet period after a restore or a recovery.
const waiveQuiet = "--without-quiet-period=" + waiver

// save has a cluster write its snapshot, and returns the file.
func (c *testCluster) save(from *clusterNode) string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "snapshot")
	if r := c.operate(from, "snapshot", "save", file); r.code != exitOK {
		c.t.Fatalf("save: %v", r)
	}
	return file
}

// A new cluster takes over a snapshot: what was held is held, every new token is
// above all old ones, and an old token gives its lock back.
func TestASnapshotMovesLocksToANewCluster(t *testing.T) {
	t.Parallel()
	old := startCluster(t, 3, 0)
	token := old.take("k", longLease)
	file := old.save(old.nodes[1])
	later := old.take("after-the-snapshot", longLease)

	c := startCluster(t, 3, 0)
	c.mustOperate(c.nodes[2], "snapshot", "restore", file, waiveQuiet)
	if !c.isHeld("k") {
		t.Error("what was held is not held")
	}
	if again := c.take("after-the-snapshot", longLease); again <= later || again <= token {
		t.Errorf("token %d after %d and %d", again, token, later)
	}
	if r := ticketing(t, c.env(), "release", "k", decimal(token)); r.code != exitOK {
		t.Errorf("a release by the old token: %v", r)
	}

	leader := c.leader()
	c.kill(leader)
	if again := c.take("k", longLease); again <= later {
		t.Errorf("token %d after %d, under another leader", again, later)
	}
	c.start(leader)
	c.awaitReady(leader)

	if r := c.operate(leader, "snapshot", "restore", file, waiveQuiet); r.code == exitOK {
		t.Errorf("a cluster that has granted something was replaced: %v", r)
	}
}

// Without the waiver nothing is granted while a lease may live that the snapshot
// does not know, and what is held can be given back.
func TestNothingIsGrantedSoonAfterARestore(t *testing.T) {
	t.Parallel()
	old := startCluster(t, 1, 0)
	token := old.take("k", longLease)
	file := old.save(old.nodes[0])

	c := startCluster(t, 1, 0)
	c.mustOperate(c.nodes[0], "snapshot", "restore", file)
	if r := ticketing(t, c.env(), "acquire", "another", "--wait", "2s"); r.code == exitOK {
		t.Errorf("a grant in the quiet period: %v", r)
	}
	if r := ticketing(t, c.env(), "release", "k", decimal(token)); r.code != exitOK {
		t.Errorf("a release in the quiet period: %v", r)
	}
	c.kill(c.nodes[0])
	c.start(c.nodes[0])
	c.awaitReady(c.nodes[0])
	if r := ticketing(t, c.env(), "acquire", "another", "--wait", "2s"); r.code == exitOK {
		t.Errorf("a grant in the quiet period, after a restart: %v", r)
	}
}

// A file with a fault is refused, and changes nothing.
func TestAFaultySnapshotIsRefused(t *testing.T) {
	t.Parallel()
	old := startCluster(t, 1, 0)
	old.take("k", longLease)
	whole, err := os.ReadFile(old.save(old.nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte{}, whole...)
	flipped[len(flipped)/2] ^= 1
	c := startCluster(t, 1, 0)
	for name, content := range map[string][]byte{
		"flipped": flipped, "cut": whole[:len(whole)-1], "longer": append(append([]byte{}, whole...), 0), "empty": nil,
		"foreign": []byte("PK\x03\x04 what somebody else wrote"),
	} {
		if r := c.operate(c.nodes[0], "snapshot", "restore", writeFile(t, name, string(content)), waiveQuiet); r.code == exitOK {
			t.Errorf("%s: %v", name, r)
		}
	}
	c.take("k", time.Second)
	c.kill(c.nodes[0])
	c.start(c.nodes[0])
	c.awaitReady(c.nodes[0])
	c.take("another", time.Second)
}

// A cluster of which two nodes are gone for good goes on with the third, which keeps
// what it knew, and grows again.
func TestTheLastNodeIsRecovered(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, 1)
	token := c.take("k", longLease)
	last, spare := c.nodes[1], c.nodes[3]
	c.awaitMembers(last, "the last node close behind", func(m map[string]listedMember) bool { return m[last.id].Healthy })
	for _, n := range c.nodes[:3] {
		c.kill(n)
	}
	peers := writeFile(t, "peers.json", `[{"id": "`+last.id+`", "address": "`+last.raft+`"}]`)
	env := []string{"CLUSTER_NODE_ID=" + last.id, "CLUSTER_DATA_DIR=" + last.dir, "CLUSTER_LISTEN=" + last.raft,
		"CLUSTER_MEMBERS=" + last.id + "=" + last.raft + "=" + last.client}
	if r := ticketing(t, env, "recover", "--peers", peers, waiveQuiet); r.code != exitOK {
		t.Fatalf("recover: %v", r)
	}
	c.start(last)
	c.awaitReady(last)
	if !c.isHeld("k") {
		t.Error("the lock was forgotten")
	}
	if again := c.take("another", longLease); again <= token {
		t.Errorf("token %d after %d", again, token)
	}
	c.start(spare)
	c.mustOperate(last, "members", "add", spare.id, "--raft", spare.raft, "--client", spare.client)
	c.mustOperate(last, "members", "promote", spare.id)
	c.take("a-third", longLease)
}
