package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/client"
)

// Bounds of a benchmark: beyond them it measures its own memory.
const (
	maxBenchLoops       = 1 << 16 // workers times pipeline
	maxBenchKeys        = 1 << 20
	maxBenchConnections = 1024
)

// benchReady is how long a benchmark waits for its server before it begins.
const benchReady = 5 * time.Second

// benchPlan is what is measured.
type benchPlan struct {
	workers, keys         int
	connections, pipeline int
	duration              time.Duration
	count                 int64
	wait, lease, hold     time.Duration
}

func newBench(p *program) *cobra.Command {
	var (
		flags  clientFlags
		plan   benchPlan
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure a server, and check that no key is ever held twice",
		GroupID: groupTools,
		Long: `Takes and gives back locks as fast as it can. A pair is one acquire with its release.
The latency is the acquire's: from the call to the ticket, the time in the queue
included.

It checks each grant: nobody else in this process may hold the key, and its token must
be greater than the key's last one. If either fails, or no pair succeeds, the exit
code is 1.

Without --keys each worker has a key of its own, so nobody waits. With --keys N all
workers walk over the same N keys and wait for each other.

The workers share one broker, as the goroutines of an application do. --connections N
makes N brokers, spread over the workers; each has the sessions that a broker opens,
at least two. --pipeline N has each worker keep N pairs under way at once.`,
		Example: `  ticketing bench
  ticketing bench --workers 64 --keys 32 --count 40000
  ticketing bench --workers 16 --connections 16 --duration 10s --json`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := plan.check(); err != nil {
				return usageFault(cmd, err)
			}
			return runBench(cmd.Context(), p, &flags, plan, asJSON)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&plan.workers, "workers", 16, "how many take and give back locks at once")
	fs.IntVar(&plan.keys, "keys", 0, "keys that all workers share; 0 gives each worker its own")
	fs.DurationVar(&plan.duration, "duration", 5*time.Second, "how long to measure")
	fs.Int64Var(&plan.count, "count", 0, "pairs to do in all, in place of a duration")
	fs.DurationVar(&plan.wait, "wait", defaultWait, "longest wait of an acquire, 0s to 255s")
	fs.DurationVar(&plan.lease, "lease", client.DefaultLease, "lease of an acquire, 1s to 250s")
	fs.DurationVar(&plan.hold, "hold", 0, "how long each lock is held before it is given back")
	fs.IntVar(&plan.connections, "connections", 1, "brokers that the workers are spread over")
	fs.IntVar(&plan.pipeline, "pipeline", 1, "pairs that each worker keeps under way at once")
	notBoth(cmd, "count", "duration")
	jsonFlag(cmd, &asJSON)
	flags.add(cmd)
	return cmd
}

// loops is how many pairs are under way at once.
func (b benchPlan) loops() int { return b.workers * b.pipeline }

// check refuses a plan that can't be carried out, with every fault.
func (b benchPlan) check() error {
	var faults []error
	bound := func(flag string, n, low, high int) {
		if n < low || n > high {
			faults = append(faults, fmt.Errorf("--%s is %d, not in %d to %d", flag, n, low, high))
		}
	}
	bound("workers", b.workers, 1, maxBenchLoops)
	bound("pipeline", b.pipeline, 1, maxBenchLoops)
	bound("keys", b.keys, 0, maxBenchKeys)
	bound("connections", b.connections, 1, maxBenchConnections)
	if b.count < 0 {
		faults = append(faults, fmt.Errorf("--count is %d", b.count))
	}
	if b.count == 0 && b.duration <= 0 {
		faults = append(faults, fmt.Errorf("--duration is %s", b.duration))
	}
	if b.hold < 0 {
		faults = append(faults, fmt.Errorf("--hold is %s", b.hold))
	}
	if len(faults) == 0 && b.loops() > maxBenchLoops {
		faults = append(faults, fmt.Errorf("--workers times --pipeline is %d, above %d", b.loops(), maxBenchLoops))
	}
	return errors.Join(faults...)
}

// runBench connects, measures and prints.
func runBench(ctx context.Context, p *program, flags *clientFlags, plan benchPlan, asJSON bool) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	brokers, err := benchBrokers(ctx, p, flags, plan)
	defer func() {
		for _, b := range brokers {
			b.Close()
		}
	}()
	if err != nil {
		return acquireFault(ctx, err)
	}
	b := newBenchmark(plan, brokers)
	b.run(ctx, p.stderr)
	result := b.result()
	if asJSON {
		err = printJSON(p.stdout, result)
	} else {
		err = result.print(p.stdout)
	}
	return errors.Join(result.fault(), err)
}

// benchBrokers connects the brokers and waits until each can serve. It returns
// those it made with an error, too.
func benchBrokers(ctx context.Context, p *program, flags *clientFlags, plan benchPlan) ([]*client.Broker, error) {
	perBroker := (plan.loops() + plan.connections - 1) / plan.connections
	var brokers []*client.Broker
	for range plan.connections {
		broker, err := flags.connect(p, func(c *client.Config) {
			c.MaxPending = min(max(perBroker, client.DefaultMaxPending), client.MaxMaxPending)
		})
		if err != nil {
			return brokers, err
		}
		brokers = append(brokers, broker)
	}
	ctx, cancel := context.WithTimeout(ctx, benchReady)
	defer cancel()
	for _, broker := range brokers {
		if err := broker.WaitReady(ctx); err != nil {
			return brokers, err
		}
	}
	return brokers, nil
}
