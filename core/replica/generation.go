package replica

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// raftShutdownPatience is how long the loops and raft may take to end. One whose disk
	// hangs never does; then only the end of the process ends it.
	raftShutdownPatience = 5 * time.Second
	// loopsPatience is how much of it the loops have: raft answers all that it has taken
	// when it has lost its leadership, at the latest twice its leader's lease after the
	// transport was cut, unless its disk hangs.
	loopsPatience = 2 * time.Second
)

// commitNews is how soon a follower of an idle leader learns what was committed last, to
// twice of it. Nobody waits for it: a new leader finds out by itself.
const commitNews = 250 * time.Millisecond

// generation is one life of the stores and raft, from opening to closing them.
type generation struct {
	r          *Replica
	stores     *Stores
	transport  raft.Transport
	raft       *raft.Raft
	began      time.Time // when raft did
	fsm        *fsm
	leadership leadership
	tasks      chan func()   // for the leading loop
	stop       chan struct{} // the generation ends
	ready      chan struct{} // with the transport open: raft has begun, or never will
	down       chan struct{} // raft is down
	untaken    atomic.Int32  // how often raft took nothing in time, one after the other
	failing    sync.Once
	err        error // why it ends; readable when stop is closed
	wg         sync.WaitGroup
}

// fail ends the generation.
func (g *generation) fail(err error) {
	g.failing.Do(func() {
		g.err = err
		close(g.stop)
	})
}

// live runs one generation and returns why it ended.
func (r *Replica) live() error {
	g := &generation{
		r: r, leadership: leadership{changed: make(chan struct{}, 1)},
		tasks: make(chan func()), stop: make(chan struct{}), ready: make(chan struct{}), down: make(chan struct{}),
	}
	go func() {
		select {
		case <-r.stop:
			g.fail(errStopped)
		case <-g.stop:
		}
	}()
	err := g.open()
	if err != nil {
		g.fail(err)
		return errors.Join(g.err, g.closeStores())
	}
	r.mu.Lock()
	r.generation = g
	r.mu.Unlock()
	g.wg.Go(g.lead)
	g.wg.Go(g.propose)
	g.wg.Go(g.watchPeers)
	unobserve := g.observe()
	<-g.stop
	unobserve()
	r.mu.Lock()
	r.generation, r.why = nil, g.err
	r.mu.Unlock()
	return errors.Join(g.err, g.close())
}

// open opens the stores and, when this node may take part, raft.
func (g *generation) open() error {
	r := g.r
	stores, err := g.openStores()
	if err != nil {
		return err
	}
	g.stores = stores
	log := watchedLog{stores.Log, g.fail, r.opts.Observer}
	stable := stubbornStable{stores.Stable, g.fail}
	if err := g.firstStart(log, stable); err != nil {
		return err
	}
	if g.transport, err = g.openTransport(); err != nil {
		return fmt.Errorf("open raft's transport: %w", err)
	}
	g.fsm = newFSM(r.opts.Observer, g.fail, g.leadership.poke)
	notify := make(chan bool)
	cfg := r.raftConfig()
	cfg.NotifyCh = notify
	go g.forward(notify)
	g.began = time.Now()
	g.raft, err = raft.NewRaft(cfg, g.fsm, log, stable, watchedSnapshots{stores.Snapshots, r.snapshotStored}, g.transport)
	close(g.ready)
	if err != nil {
		close(g.down)
		if c, ok := g.transport.(raft.WithClose); ok {
			err = errors.Join(err, c.Close())
		}
		return fmt.Errorf("start raft: %w", err)
	}
	r.fsm.Store(g.fsm)
	return nil
}

func (g *generation) openStores() (*Stores, error) {
	if g.r.opts.Stores != nil {
		return g.r.opts.Stores()
	}
	return openStores(g.r.opts.DataDir, newRaftLogger(g.r.log))
}

func (g *generation) openTransport() (raft.Transport, error) {
	if g.r.opts.Transport != nil {
		return g.r.opts.Transport(g)
	}
	return newTransport(g.r.opts.Link, g.r.opts.Self.Raft, g, newRaftLogger(g.r.log)), nil
}

// MayVote tells whether this node knows its cluster: without a configuration it may
// have forgotten what it acknowledged.
func (g *generation) MayVote() bool {
	return len(g.servers()) > 0
}

// servers returns the members as raft's newest configuration has them.
func (g *generation) servers() []raft.Server {
	<-g.ready
	if g.raft == nil {
		return nil
	}
	f := g.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// Removed ends this node's part in the cluster: another node said that it was removed.
// It is made durable, so that the node does not ask again after a restart.
func (g *generation) Removed() {
	if err := g.r.keep(func(n *note) { n.Removed = true }); err != nil {
		g.r.log.Warn("this node was removed from the cluster, and can't note it", "error", err)
	}
	g.fail(fmt.Errorf("%w: give it a new id and an empty data folder, and add it again", ErrRemoved))
}

// raftConfig is raft's configuration.
func (r *Replica) raftConfig() *raft.Config {
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(r.opts.NodeID)
	cfg.HeartbeatTimeout = r.opts.Timers.Heartbeat
	cfg.ElectionTimeout = r.opts.Timers.Election
	cfg.LeaderLeaseTimeout = r.opts.Timers.LeaderLease
	cfg.SnapshotInterval = r.opts.Timers.SnapshotInterval
	cfg.SnapshotThreshold = r.opts.Timers.SnapshotThreshold
	cfg.TrailingLogs = trailingLogs
	cfg.CommitTimeout = commitNews
	// A leader that was removed goes on as a follower that calls no election, until it is
	// told. Raft that ends by itself can't be waited for before the stores are closed.
	cfg.ShutdownOnRemove = false
	cfg.NoLegacyTelemetry = true
	cfg.Logger = newRaftLogger(r.log)
	return cfg
}

// close ends what open began, in this order: the service is told that this node does
// not serve; the transport is cut, so that the others elect though this node's disk may
// hang; the loops end; raft ends; then its stores can be closed.
func (g *generation) close() error {
	patience := time.After(raftShutdownPatience)
	g.r.follow("")
	var err error
	if c, ok := g.transport.(raft.WithClose); ok {
		err = c.Close()
	}
	loops := make(chan struct{})
	go func() { g.wg.Wait(); close(loops) }()
	// Before raft: it never answers what it had committed, but not applied, when it was
	// shut down, and a loop that waits for that would wait for ever.
	within(loops, loopsPatience)
	ended := make(chan error, 1)
	go func() { ended <- g.raft.Shutdown().Error() }()
	select {
	case down := <-ended:
		err = errors.Join(err, down)
	case <-patience:
		// Its stores stay open: raft may be in the middle of a write.
		go func() { <-ended; close(g.down) }()
		return errors.Join(err, fmt.Errorf("%w: its disk has not answered for %v", errHung, outcomePatience+raftShutdownPatience))
	}
	close(g.down)
	// A loop that hung, with a disk that answers again just now, may be one of those that
	// wait for ever. It does nothing any more, so nobody has to wait for it.
	within(loops, loopsPatience)
	g.r.follow("") // the leading loop may have been about to serve
	return errors.Join(err, g.closeStores())
}

// within waits until a channel is closed, so long at most.
func within(closed <-chan struct{}, patience time.Duration) {
	select {
	case <-closed:
	case <-time.After(patience):
	}
}

func (g *generation) closeStores() error {
	if g.stores == nil {
		return nil
	}
	if err := g.stores.Close(); err != nil {
		return fmt.Errorf("close the log: %w", err)
	}
	return nil
}
