package coretest

import (
	"bytes"
	"context"
	"testing"
	"time"
)

// notReady checks that a node says that it is not ready, and why.
func notReady(t *testing.T, n *Node) {
	t.Helper()
	if r := n.Replica(); r != nil {
		if st := r.Status(); st.Ready || st.Why == "" {
			t.Errorf("%s says that it is ready, or not why it is not: %+v", n.Name, st)
		}
	}
}

// A leader whose disk is full steps aside and says so, another one serves, and it comes back
// when there is room. What was acknowledged is there.
func TestADiskThatIsFullAndHasRoomAgain(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		workFor(c, busyWork, func() {
			for range 3 {
				leader := c.AwaitLeader(settleTime)
				leader.Disk.SetFull(true)
				if c.AwaitOther(leader, settleTime) == nil {
					t.Fatal("nobody took over")
				}
				c.Run(3 * time.Second)
				notReady(t, leader)
				leader.Disk.SetFull(false)
				c.Run(5 * time.Second)
			}
		})
		serves(t, c)
	})
}

// A leader whose disk hangs without an error is deposed: another one serves within the five
// seconds after which an outcome counts as unknown, and an election. It is not ready
// meanwhile, and its process ends or it comes back.
func TestALeaderWhoseDiskHangs(t *testing.T) {
	for _, hang := range []time.Duration{7 * time.Second, 30 * time.Second} {
		t.Run(hang.String(), func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, c *Cluster) {
				workFor(c, busyWork, func() {
					leader := c.Leader()
					leader.Disk.Hang()
					if c.AwaitOther(leader, 8*time.Second) == nil {
						t.Fatal("nobody took over")
					}
					notReady(t, leader)
					c.Run(hang)
					leader.Disk.Answer()
					c.Run(2 * time.Second)
					leader.Start()
					c.Run(5 * time.Second)
				})
				serves(t, c)
			})
		})
	}
}

// A follower that is sent a snapshot takes the entries that follow on it, also after a
// restart, and the cluster can go on with it alone.
func TestASnapshotInstallFollowedByAppends(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		leader := c.Leader()
		late, other := c.other(leader, c.NewClient(0).random), (*Node)(nil)
		for _, n := range c.nodes {
			if n != leader && n != late {
				other = n
			}
		}
		workFor(c, busyWork, func() {
			for range 3 {
				late.Crash()
				c.Run(4 * snapshotInterval)
				leader.Compact()
				other.Compact()
				late.Start()
				c.Run(3 * time.Second)
				other.Crash()
				c.Run(3 * time.Second)
				late.Crash()
				late.Start()
				c.Run(5 * time.Second)
				other.Start()
				c.Run(3 * time.Second)
			}
		})
		serves(t, c)
	})
}

// Tokens go on rising when every node is started again from a snapshot.
func TestTokensRiseAcrossSnapshotsAndRestarts(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		client := c.NewClient(1)
		defer client.Close()
		var last uint64
		for range 5 {
			workFor(c, busyWork, func() { c.Run(3 * snapshotInterval) })
			o := grant(t, client, "key-9", 10*time.Second, time.Second)
			if o.Token <= last {
				t.Errorf("token %d after %d", o.Token, last)
			}
			last = o.Token
			for _, n := range c.nodes {
				n.Compact()
				n.Crash()
			}
			c.Settle()
			c.Run(3 * time.Second)
		}
	})
}

// A restore takes grants and time of a file, the tokens go far beyond all of it, nothing is
// granted in the quiet period, and the leader that goes on takes no lease's time away.
func TestARestoreUnderASteadyLeader(t *testing.T) {
	for _, waive := range []bool{false, true} {
		inCluster(t, 3, func(t *testing.T, c *Cluster) {
			file, held := snapshotOf(t, c)
			c.Run(100 * time.Second) // of the new cluster's reign
			fresh := restart(c)
			c.Run(70 * time.Second)
			fresh.Ledger.ExpectRestore()
			restored := time.Since(fresh.History.began)
			leader := fresh.AwaitLeader(settleTime)
			if err := leader.Replica().RestoreSnapshot(within(t, settleTime), bytes.NewReader(file), waive); err != nil {
				t.Fatal(err)
			}
			client := fresh.NewClient(1)
			defer client.Close()
			wait := held.Lease + 5*time.Second
			if !waive {
				wait = 4 * time.Second
				if o := client.Acquire(within(t, settleTime), "other", wait, time.Second); o == nil || o.Outcome != Busy {
					t.Errorf("in the quiet period: %v", o)
				}
				c.Run(250 * time.Second)
			}
			o := grant(t, client, "key-0", wait, time.Second)
			if o.Token <= held.Token {
				t.Errorf("token %d after a restore, and %d was granted before", o.Token, held.Token)
			}
			if early := restored + held.Lease - 3*time.Second - o.end.at; early > 0 {
				t.Errorf("granted %v before the lease that was restored was over", early)
			}
			if late := o.end.at - restored - held.Lease - 2*time.Second; waive && late > 0 {
				t.Errorf("granted %v after the lease that was restored was over", late)
			}
			fresh.Close()
			if err := fresh.Ledger.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// snapshotOf holds key-0 for a while and saves a snapshot.
func snapshotOf(t *testing.T, c *Cluster) ([]byte, *Operation) {
	client := c.NewClient(1)
	defer client.Close()
	held := grant(t, client, "key-0", 0, 60*time.Second)
	var file bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := c.Leader().Replica().SaveSnapshot(ctx, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), held
}

// restart begins another cluster like this one.
func restart(c *Cluster) *Cluster {
	fresh := Start(c.config)
	fresh.AwaitReady(settleTime)
	return fresh
}
