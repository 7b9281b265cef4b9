package coretest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// inCluster runs a test on a new cluster that serves, in fake time, and holds what happened
// against the promises.
func inCluster(t *testing.T, nodes int, do func(t *testing.T, c *Cluster)) {
	t.Helper()
	s := Config{Seed: setting(t, "SEED", uint64(time.Now().UnixMicro())), Nodes: nodes}
	t.Logf("SEED=%d", s.Seed)
	logs := logTo(t, &s)
	r := Result{}
	failed := true
	defer func() {
		if failed || t.Failed() {
			keep(t, r, logs)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		s.Timers = simulationTimers()
		r.Cluster = Start(s)
		defer r.Cluster.Close()
		defer func() { failed = t.Failed() }()
		if !r.Cluster.AwaitReady(settleTime) {
			t.Fatal("the cluster did not begin")
		}
		do(t, r.Cluster)
		r.Err = errors.Join(r.Cluster.Ledger.Err(), CheckAnswers(r.Cluster.History.Operations(), r.Cluster.Ledger.Tenures()))
	})
	if r.Err == nil {
		r.Err = CheckModel(r.Cluster.History.Operations())
	}
	if r.Err != nil {
		t.Errorf("SEED=%d: %v", s.Seed, r.Err)
	}
}

// within returns a context of some seconds.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// grant acquires a key and fails when it is not granted in time.
func grant(t *testing.T, c *Client, key string, wait, lease time.Duration) *Operation {
	t.Helper()
	for ctx := within(t, wait+settleTime); ; {
		o := c.Acquire(ctx, key, wait, lease)
		switch {
		case o != nil && o.Outcome == Granted:
			return o
		case o == nil || o.Outcome != Unknown:
			t.Fatalf("%s is not granted: %v", key, o)
		}
	}
}

// workFor lets clients work on a cluster while something happens to it.
func workFor(c *Cluster, w Workload, happens func()) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, w.Clients)
	for i := range w.Clients {
		go func() {
			w.run(ctx, c.NewClient(100+i))
			done <- struct{}{}
		}()
	}
	happens()
	stop()
	for range w.Clients {
		<-done
	}
}

// busyWork is four clients on two keys.
var busyWork = Workload{
	Clients: 4, Keys: 2,
	MaxWait: 3 * time.Second, MaxLease: 3 * time.Second, MaxHold: time.Second, MaxPause: 50 * time.Millisecond,
}

// A stalled leader that wakes up ends no live lease, and its grants are the cluster's or none.
func TestAStalledLeaderThatWakesEndsNoLiveLease(t *testing.T) {
	for _, stall := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 4 * time.Second, 9 * time.Second} {
		t.Run(stall.String(), func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, c *Cluster) {
				holder, other := c.NewClient(1), c.NewClient(2)
				defer holder.Close()
				defer other.Close()
				held := grant(t, holder, "key-9", 0, 12*time.Second)
				leader := c.Leader()
				workFor(c, busyWork, func() {
					leader.Pause()
					time.Sleep(stall)
					leader.Resume()
					time.Sleep(2 * time.Second)
				})
				o := grant(t, other, "key-9", 30*time.Second, time.Second)
				if early := held.call.at + held.Lease - o.end.at; early > 0 {
					t.Errorf("granted again %v before its lease was over", early)
				}
			})
		})
	}
}

// Leadership that is lost and regained at once, or that moves on again while a node is still
// in the barrier of the last one, wedges no node.
func TestLeadershipThatComesAndGoesWedgesNobody(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		random := c.NewClient(0).random
		workFor(c, busyWork, func() {
			for range 40 {
				for _, from := range c.nodes {
					for _, to := range c.nodes {
						c.Network.Slow(from.raft(), to.raft(), time.Duration(random.IntN(80))*time.Millisecond+1)
					}
				}
				leader := c.AwaitLeader(time.Second)
				if leader == nil {
					continue
				}
				if random.IntN(2) == 0 {
					c.Isolate(leader)
					time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
					c.Network.Heal()
				} else {
					_ = leader.TransferTo("", time.Second)
				}
				time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
			}
			c.Settle()
			time.Sleep(settleTime)
		})
		serves(t, c)
	})
}

// serves checks that one node serves, that every other follows it, and that all are ready.
func serves(t *testing.T, c *Cluster) {
	t.Helper()
	client := c.NewClient(999)
	defer client.Close()
	grant(t, client, "afterwards", 0, time.Second)
	leaders := 0
	for _, n := range c.nodes {
		if n.Serves() {
			leaders++
		}
		if r := n.Replica(); r == nil || !r.Status().Ready {
			t.Errorf("%s is not ready", n.Name)
		}
	}
	if leaders != 1 {
		t.Errorf("%d nodes serve", leaders)
	}
}

// A new leader does not serve before it has applied what was acknowledged: it refuses what
// the old one had granted a moment ago.
func TestANewLeaderKnowsWhatWasGranted(t *testing.T) {
	inCluster(t, 5, func(t *testing.T, c *Cluster) {
		holder, other := c.NewClient(1), c.NewClient(2)
		defer holder.Close()
		defer other.Close()
		for range 10 {
			leader := c.AwaitLeader(settleTime)
			o := grant(t, holder, "key-0", 10*time.Second, 5*time.Second)
			leader.Crash()
			if c.AwaitOther(leader, settleTime) == nil {
				t.Fatal("nobody took over")
			}
			again := other.Acquire(within(t, settleTime), "key-0", 0, time.Second)
			if held := o.end.at + 4*time.Second; again.Outcome != TimedOut && again.end.at < held {
				t.Errorf("%v, though it is held: %v", again, o)
			}
			leader.Start()
			holder.Release(within(t, settleTime), "key-0", o.Token)
			time.Sleep(2 * time.Second)
		}
	})
}

// A key whose holder is dead becomes free though there is an election every two seconds:
// each adds the time without a leader and a second at most, and does not set it back.
func TestElectionsDoNotKeepADeadHoldersKey(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		holder, other := c.NewClient(1), c.NewClient(2)
		defer other.Close()
		held := grant(t, holder, "key-0", 0, 10*time.Second)
		holder.Close()
		reigns := c.Ledger.Reigns()
		done := make(chan *Operation)
		go func() { done <- grant(t, other, "key-0", 60*time.Second, time.Second) }()
		var o *Operation
		for without := time.Duration(0); o == nil; {
			select {
			case o = <-done:
				changes := time.Duration(c.Ledger.Reigns() - reigns)
				if took, most := o.end.at-held.end.at, held.Lease+without+changes*time.Second+100*time.Millisecond; took > most {
					t.Errorf("free after %v; with %d elections that left %v without a leader it is %v at most", took, changes, without, most)
				}
			case <-time.After(2 * time.Second):
				leader := c.AwaitLeader(settleTime)
				gone := time.Now()
				leader.Crash()
				c.AwaitOther(leader, settleTime)
				without += time.Since(gone)
				leader.Start()
			}
		}
	})
}

// A leader that is paused, resumed, deposed and elected again does not take the cluster's
// time ahead of real time. The ledger looks at each entry.
func TestTimeNeverRunsAhead(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		workFor(c, busyWork, func() {
			for range 5 {
				first := c.AwaitLeader(settleTime)
				first.Pause()
				second := c.AwaitOther(first, settleTime)
				first.Resume()
				time.Sleep(2 * time.Second)
				if err := second.TransferTo(first.Name, 2*time.Second); err != nil {
					t.Logf("transfer: %v", err)
				}
				time.Sleep(2 * time.Second)
			}
		})
		serves(t, c)
	})
}

// A crash in the middle of a write keeps a beginning of it; the node starts on it, and what
// was acknowledged is there.
func TestACrashInMidWrite(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *Cluster) {
		for _, n := range c.nodes {
			n.Disk.Slow(20 * time.Millisecond)
		}
		workFor(c, busyWork, func() {
			for i := range 20 {
				n := c.nodes[i%3]
				if leader := c.Leader(); leader != nil && i%2 == 0 {
					n = leader
				}
				n.Crash()
				time.Sleep(time.Duration(i*50) * time.Millisecond)
				n.Start()
				time.Sleep(3 * time.Second)
			}
			for _, n := range c.nodes {
				n.Crash() // all at once, in the middle of whatever they write
			}
			c.Settle()
			time.Sleep(settleTime)
		})
		serves(t, c)
	})
}
