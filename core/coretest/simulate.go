package coretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/replica"
)

// Simulation is a workload on a cluster that accidents happen to.
type Simulation struct {
	Config
	Workload
	Schedule
	Length time.Duration // of the accidents, in fake time
}

const (
	// settleTime is how long a mended cluster has to elect a leader, and to end what is left.
	settleTime = 15 * time.Second
	// snapshotInterval and snapshotThreshold make snapshots often.
	snapshotInterval  = 3 * time.Second
	snapshotThreshold = 16
	// commitSlack is what the commits of a grant and of its end may take besides.
	commitSlack = 13 * time.Second
	// patienceSlack is how long an answer may take besides its wait: an elected leader that
	// does not serve, an entry without an outcome, a pause.
	patienceSlack = 25 * time.Second
)

// DefaultSimulation returns a simulation of three or five nodes, by its seed.
func DefaultSimulation(seed uint64) Simulation {
	return Simulation{
		Config: Config{Seed: seed, Nodes: 3 + 2*int(seed%2)},
		Workload: Workload{
			Clients: 8, Keys: 3,
			MaxWait: 6 * time.Second, MaxLease: 5 * time.Second, MaxHold: 6 * time.Second, MaxPause: time.Second,
		},
		Schedule: Schedule{Faults: Faults, MaxCalm: 4 * time.Second, MaxLasts: 12 * time.Second},
		Length:   2 * time.Minute,
	}
}

// simulationTimers are the default ones, with snapshots more often.
func simulationTimers() replica.Timers {
	t := replica.DefaultTimers()
	t.SnapshotInterval, t.SnapshotThreshold = snapshotInterval, snapshotThreshold
	return t
}

// Result is what came of a simulation.
type Result struct {
	Cluster  *Cluster // closed
	Accident []string // in order
	Err      error    // which promises were broken
}

// Run runs the simulation in a bubble of its own that the caller has made. The promises that
// porcupine checks are left to the caller: CheckModel takes real time.
func (s Simulation) Run() (r Result) {
	s.Timers = simulationTimers()
	c := Start(s.Config)
	defer c.Close()
	r.Cluster = c
	if !c.AwaitReady(settleTime) {
		r.Err = errors.New("the cluster did not begin")
		return r
	}
	var clients sync.WaitGroup
	working, stop := context.WithCancel(context.Background())
	for i := range s.Clients {
		clients.Go(func() { s.Workload.run(working, c.NewClient(i)) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Length)
	s.Schedule.run(ctx, c, rand.New(rand.NewPCG(s.Seed, 3)), func(what string) { r.Accident = append(r.Accident, what) })
	cancel()
	c.Settle()
	time.Sleep(settleTime)
	stop()
	clients.Wait()
	r.Err = errors.Join(s.afterwards(c), c.Ledger.Err(), c.Ledger.CheckLateness(commitSlack),
		CheckAnswers(c.History.Operations(), c.Ledger.Tenures()),
		CheckPatience(c.History.Operations(), patienceSlack))
	return r
}

// afterwards checks that a mended cluster serves: every lease has ended after its time, and
// every key can be had at once.
func (s Simulation) afterwards(c *Cluster) error {
	time.Sleep(s.MaxLease + 2*time.Second)
	if open := c.Ledger.Open(); len(open) > 0 {
		return fmt.Errorf("%s, token %d, is held though nobody works and its lease is over", open[0].Key, open[0].Token)
	}
	client := c.NewClient(s.Clients)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for i := range s.Keys {
		if o := client.Acquire(ctx, fmt.Sprintf("key-%d", i), 0, time.Second); o == nil || o.Outcome != Granted {
			return fmt.Errorf("a mended cluster does not grant key-%d: %v", i, o)
		}
	}
	return nil
}
