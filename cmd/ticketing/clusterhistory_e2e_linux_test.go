//go:build e2e

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/client"
	"github.com/ticketing-io/ticketing/core/coretest"
)

// What the clients of the cluster under test do.
const (
	crowdClients = 64
	crowdKeys    = 32
	// crowdPause is the longest pause of a client between two pairs. The search for an
	// order of a key's operations takes memory with the square of their number.
	crowdPause = 300 * time.Millisecond
	crowdHold  = 3 * time.Millisecond
	// crowdAbandons is of how many grants one is left to its lease's end.
	crowdAbandons = 100
	crowdLease    = 2 * time.Second
	// crowdWait is far longer than a key can stay held: a grant whose client never
	// heard of it ends with its lease, and a change of leader adds a second and the time
	// without one. With kills every few seconds a waiter is served long before.
	crowdWait = 60 * time.Second
)

// grant is a grant as its client saw it.
type grant struct {
	key        string
	token      uint64
	asked, got time.Duration
}

// crowd is the clients, and what they did.
type crowd struct {
	t       *testing.T
	began   time.Time
	history *coretest.History
	stop    context.CancelFunc
	running sync.WaitGroup
	held    [crowdKeys]atomic.Pointer[client.Ticket]

	mu     sync.Mutex
	grants []grant
}

// startCrowd starts clients, each with its own broker for all nodes.
func startCrowd(t *testing.T, c *testCluster, seed uint64) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &crowd{t: t, began: time.Now(), history: coretest.NewHistory(), stop: stop}
	t.Cleanup(func() { w.end() })
	for id := range crowdClients {
		broker := c.broker()
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		w.running.Go(func() {
			for ctx.Err() == nil {
				w.pair(ctx, broker, id, random)
				sleep(ctx, time.Duration(random.Int64N(int64(crowdPause))))
			}
		})
	}
	return w
}

// end stops the clients when each has done its pair.
func (w *crowd) end() {
	w.stop()
	w.running.Wait()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func crowdKey(k int) string { return fmt.Sprintf("order-%d", k) }

// pair takes a key, holds it for a moment, and gives it back.
func (w *crowd) pair(ctx context.Context, broker *client.Broker, id int, random *rand.Rand) {
	k := random.IntN(crowdKeys)
	acquire := &coretest.Operation{Client: id, Key: crowdKey(k), Wait: crowdWait, Lease: crowdLease}
	w.history.Begin(acquire)
	asked := time.Since(w.began)
	// No context of the test: what is under way at its end must have its outcome.
	ticket, err := broker.Acquire(context.Background(), crowdKey(k), crowdWait, crowdLease, 0)
	if err != nil {
		w.history.End(acquire, acquired(err), 0)
		if errors.Is(err, client.ErrTimeout) && !errors.Is(err, client.ErrIndeterminate) {
			w.t.Errorf("client %d waited for %s for %s: a key that nobody gives back, or a waiter that was lost (%v)", id, crowdKey(k), crowdWait, err)
		}
		return
	}
	w.history.End(acquire, coretest.Granted, ticket.Token())
	w.note(grant{crowdKey(k), ticket.Token(), asked, time.Since(w.began)})
	if before := w.held[k].Swap(ticket); before != nil && before.Remaining() > 0 && ticket.Remaining() > 0 {
		w.t.Errorf("%s is held twice, by tokens %d and %d", crowdKey(k), before.Token(), ticket.Token())
	}
	sleep(ctx, time.Duration(random.Int64N(int64(crowdHold))))
	if random.IntN(crowdAbandons) == 0 {
		ticket.Detach() // it stays in held: nobody else may have it before its lease's end
		return
	}
	w.held[k].CompareAndSwap(ticket, nil)
	release := &coretest.Operation{Client: id, Key: crowdKey(k), Token: ticket.Token()}
	w.history.Begin(release)
	err = ticket.Release(context.Background())
	w.history.End(release, released(err), ticket.Token())
}

func (w *crowd) note(g grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grants = append(w.grants, g)
}

// acquired is what a client knows of an acquire that failed.
func acquired(err error) coretest.Outcome {
	switch {
	case errors.Is(err, client.ErrIndeterminate):
		return coretest.Unknown
	case errors.Is(err, client.ErrTimeout):
		return coretest.TimedOut
	}
	return coretest.Busy // every other error is certainly not a grant
}

// released is what a client knows of a release. An earlier attempt may be why
// nothing was left to release: that is unknown.
func released(err error) coretest.Outcome {
	switch {
	case err == nil:
		return coretest.Released
	case errors.Is(err, client.ErrNotCurrent) && !errors.Is(err, client.ErrIndeterminate):
		return coretest.NotCurrent
	}
	return coretest.Unknown
}

// check holds the history against the promises.
func (w *crowd) check() {
	w.t.Helper()
	count := w.history.Count()
	w.t.Logf("outcomes: %v", count)
	if count[coretest.Granted] < crowdClients {
		w.t.Errorf("only %d grants", count[coretest.Granted])
	}
	if err := coretest.CheckModel(w.history.Operations()); err != nil {
		w.t.Error(err)
	}
	w.checkTokens()
}

// checkTokens: a grant that was asked for after another had been answered, of any
// key, has the greater token.
func (w *crowd) checkTokens() {
	w.mu.Lock()
	defer w.mu.Unlock()
	byAsked, byGot := slices.Clone(w.grants), slices.Clone(w.grants)
	slices.SortFunc(byAsked, func(a, b grant) int { return cmp.Compare(a.asked, b.asked) })
	slices.SortFunc(byGot, func(a, b grant) int { return cmp.Compare(a.got, b.got) })
	highest, seen := grant{}, 0
	for _, g := range byAsked {
		for ; byGot[seen].got < g.asked; seen++ { // g's own is never before
			if byGot[seen].token > highest.token {
				highest = byGot[seen]
			}
		}
		if g.token <= highest.token {
			w.t.Errorf("token %d of %s, asked for at %s, is not above token %d of %s, which had come at %s",
				g.token, g.key, g.asked, highest.token, highest.key, highest.got)
		}
	}
}

// checkFreeAgain: whatever its clients heard or did not hear, no key stays held
// beyond its lease.
func (w *crowd) checkFreeAgain(broker *client.Broker) {
	w.t.Helper()
	for k := range crowdKeys {
		ticket, err := broker.Acquire(w.t.Context(), crowdKey(k), crowdWait, crowdLease, 0)
		if err != nil {
			w.t.Errorf("%s is not free again: %v", crowdKey(k), err)
			continue
		}
		ticket.Close()
	}
}

// seedOf returns the seed of a random test, and prints it: SEED replays it.
func seedOf(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SEED=%d", seed)
	return seed
}

// crowdKills is how often the leader is killed.
const crowdKills = 20

// TestNoPromiseIsBrokenByCrashes: 64 clients, and three nodes that are killed, stopped
// and started, one by one and all at once.
func TestNoPromiseIsBrokenByCrashes(t *testing.T) {
	c := startCluster(t, 3, 0)
	seed := seedOf(t)
	w := startCrowd(t, c, seed)
	probe := c.broker()
	var failovers []time.Duration
	next := func(since time.Time) { failovers = append(failovers, nextTicket(t, probe, since)) }

	for range crowdKills {
		leader := c.leader()
		c.kill(leader)
		next(time.Now())
		c.start(leader)
		c.awaitReady(leader)
		time.Sleep(crowdPause) // for some undisturbed work under this leader
	}
	told := summary(failovers)
	t.Logf("a client's next ticket after a kill of the leader: %s", told)

	leader := c.leader()
	leader.cmd.Process.Signal(syscall.SIGSTOP)
	stopped := time.Now()
	t.Logf("after SIGSTOP of the leader: %s", nextTicket(t, probe, stopped).Round(time.Millisecond))
	time.Sleep(time.Until(stopped.Add(10 * time.Second)))
	leader.cmd.Process.Signal(syscall.SIGCONT)
	time.Sleep(time.Second)
	c.awaitReady(leader)

	for _, n := range c.nodes {
		c.kill(n)
	}
	killed := time.Now()
	for _, n := range c.nodes {
		c.start(n)
	}
	t.Logf("after a kill and a start of all: %s", nextTicket(t, probe, killed).Round(time.Millisecond))
	time.Sleep(time.Second)

	w.end()
	w.check()
	w.checkFreeAgain(probe)
}

// nextTicket returns how long after a moment a client has a ticket again.
func nextTicket(t *testing.T, broker *client.Broker, since time.Time) time.Duration {
	t.Helper()
	var took time.Duration
	eventually(t, "a ticket", func() bool {
		ticket, err := broker.Acquire(t.Context(), fmt.Sprintf("probe-%d", since.UnixNano()), 10*time.Second, crowdLease, 0)
		if err != nil {
			return false
		}
		took = time.Since(since)
		ticket.Close()
		return true
	})
	return took
}

// summary shows a median and its ends.
func summary(times []time.Duration) string {
	slices.Sort(times)
	return fmt.Sprintf("median %s, %s to %s, of %d", times[len(times)/2].Round(time.Millisecond),
		times[0].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond), len(times))
}
