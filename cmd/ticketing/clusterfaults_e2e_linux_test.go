//go:build e2e

package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A node whose disk is full steps aside, and comes back when there is room. Nothing
// that was acknowledged is lost.
func TestANodeWithAFullDiskStepsAsideAndComesBack(t *testing.T) {
	needsRoot(t, "mount", "umount")
	c := layOut(t, 3, 0)
	full := c.nodes[0]
	const size = 256 << 20 // room for two segments of the log, and snapshots
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size="+decimal(size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for i, flag := range full.flags {
		if flag == full.dir {
			full.flags[i] = filepath.Join(disk, "data")
		}
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	for _, n := range c.nodes {
		c.awaitReady(n)
	}
	c.mustOperate(full, "members", "transfer-leader", full.id)
	eventually(t, full.id+" leading", func() bool {
		addr, err := leaderAsToldBy(full.client)
		return err == nil && addr == full.client
	})
	token := c.take("k", longLease)

	filler := filepath.Join(disk, "filler")
	if err := fill(filler); err != nil {
		t.Fatal(err)
	}
	// It goes on in the file of the log that it has, until that is full.
	c.loadUntil(full.log, "stands aside until its disk works again")
	eventually(t, "another leader", func() bool {
		addr, err := leaderAsToldBy(c.nodes[1].client)
		return err == nil && addr != full.client
	})
	if !c.isHeld("k") {
		t.Error("the lock is not held any longer")
	}
	again := c.take("another", longLease)
	if again <= token {
		t.Errorf("token %d after %d", again, token)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.awaitMembers(c.nodes[1], "the node back", func(m map[string]listedMember) bool { return m[full.id].Healthy })
	c.kill(c.nodes[1]) // it counts again: without it there is no majority
	if !c.isHeld("k") {
		t.Error("the lock is not held any longer")
	}
	if last := c.take("a-third", longLease); last <= again {
		t.Errorf("token %d after %d", last, again)
	}
}

// loadUntil has clients take and give back long keys, which fill a log fast, until a
// node logs something. What errors they get is not looked at.
func (c *testCluster) loadUntil(log *lines, text string) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	broker := c.broker()
	var load sync.WaitGroup
	for i := range 64 {
		key := strings.Repeat("k", 100) + strconv.Itoa(i)
		load.Go(func() {
			for ctx.Err() == nil {
				ticket, err := broker.Acquire(context.Background(), key, 2*time.Second, 5*time.Second, 0)
				if err != nil {
					sleep(ctx, 10*time.Millisecond)
					continue
				}
				ticket.Release(context.Background())
			}
		})
	}
	defer load.Wait()
	defer stop()
	log.await(text)
}

// fill writes a file until there is no room.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if strings.Contains(err.Error(), "no space") {
		return nil
	}
	return err
}

// Clocks of the nodes that tell other times, and run since other moments, are
// nothing to the cluster: a lease is as long under each leader.
func TestNodesWhoseMonotonicClocksAreApartAgree(t *testing.T) {
	t.Parallel()
	needsRoot(t, "unshare")
	c := layOut(t, 3, 0)
	for i, offset := range []string{"0", "300", "864000"} {
		c.nodes[i].wrap = []string{"unshare", "--time", "--monotonic", offset, "--boottime", offset, "--"}
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	for _, n := range c.nodes {
		c.awaitReady(n)
	}
	const lease = 3 * time.Second
	for _, n := range c.nodes {
		c.mustOperate(n, "members", "transfer-leader", n.id)
		eventually(t, n.id+" leading", func() bool {
			addr, err := leaderAsToldBy(n.client)
			return err == nil && addr == n.client
		})
		asked := time.Now()
		first := c.take("k", lease)
		c.kill(n) // at least the lease is waited for, under another clock
		if again := c.take("k", lease); again <= first {
			t.Errorf("token %d after %d", again, first)
		}
		if held := time.Since(asked); held < lease {
			t.Errorf("granted by %s, a lease of %s ended after %s", n.id, lease, held)
		}
		c.start(n)
		c.awaitReady(n)
	}
}
