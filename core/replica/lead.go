package replica

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

// leadRetry is the pause before a leader that could not begin to serve tries again.
const leadRetry = 50 * time.Millisecond

// leadership is what raft last told of this node's leadership. Raft's main loop blocks
// until it is told, so whoever receives it must do nothing else.
type leadership struct {
	mu      sync.Mutex
	leads   bool
	epoch   uint64        // counts every change: one lost and regained is another one
	changed chan struct{} // something is new; of capacity one
}

func (l *leadership) set(leads bool) {
	l.mu.Lock()
	l.leads = leads
	l.epoch++
	l.mu.Unlock()
	l.poke()
}

// poke has the leading loop look again.
func (l *leadership) poke() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *leadership) get() (leads bool, epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leads, l.epoch
}

// forward receives what raft tells of the leadership, and nothing else, so that raft
// never waits for a node in the middle of a barrier.
func (g *generation) forward(notify <-chan bool) {
	for {
		select {
		case leads := <-notify:
			g.leadership.set(leads)
		case <-g.down:
			return
		}
	}
}

// lead is the leading loop of a generation: it makes the service's standing follow
// raft's leadership.
func (g *generation) lead() {
	retry := time.NewTimer(0)
	defer retry.Stop()
	var serving uint64 // the epoch in which this node serves; 0 when it does not
	var known string   // the leader that the service was told of
	for {
		select {
		case <-g.leadership.changed:
		case <-retry.C:
		case task := <-g.tasks:
			serving = 0 // it has to begin again, whatever the task did
			task()
		case <-g.stop:
			return
		}
		leads, epoch := g.leadership.get()
		switch {
		case !leads:
			serving = 0
			leader := g.leaderClient()
			if leader != known && leader != "" {
				g.r.log.Info("another node leads", "leader", leader)
			}
			known = leader
			g.r.follow(leader)
		case serving != epoch:
			g.r.elected()
			serving = 0
			if err := g.begin(epoch); err != nil {
				g.r.log.Debug("leader, but can't serve yet", "error", err)
				retry.Reset(leadRetry)
				continue
			}
			serving = epoch
		}
	}
}

// begin makes this node serve as the leader of an epoch: a barrier, so that everything
// committed is applied, then the entry that begins a reign. What raft told meanwhile
// is looked at by the caller.
func (g *generation) begin(epoch uint64) error {
	if err := g.barrier(); err != nil {
		return err
	}
	reign, err := g.beginReign()
	if err != nil {
		return err
	}
	self := g.r.opts.Self.Client
	g.r.look(func(m *lock.Machine) {
		if me, ok := memberOf(m, g.r.opts.NodeID); ok && me.Client != "" {
			self = me.Client
		}
	})
	if leads, now := g.leadership.get(); !leads || now != epoch {
		return errLeadershipChanged
	}
	select {
	case <-g.stop:
		return errStopped
	default:
	}
	g.r.log.Info("this node leads and serves", "term", g.raft.CurrentTerm(), "reign", reign)
	if quiet := g.r.Status().Quiet; quiet > 0 {
		g.r.log.Warn("nothing is granted yet, after a restore or a recovery", "for", quiet.Round(time.Second))
	}
	g.r.serve(reign, self)
	return nil
}

var errLeadershipChanged = fmt.Errorf("%w any more", ErrNotLeader)

// barrier returns when everything that was committed before is applied here.
func (g *generation) barrier() error {
	defer g.watch(func() {})()
	err := g.raft.Barrier(enqueuePatience).Error()
	g.taken(err)
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

// beginReign applies the entry that begins a reign. It also says who the members are,
// as far as the replicated state does not know.
func (g *generation) beginReign() (uint64, error) {
	e := lock.Entry{First: uint64(time.Now().UnixMicro()), Elapsed: g.r.service.Now()}
	g.r.look(func(m *lock.Machine) { e.Commands = g.missingMembers(m) })
	out, err := g.apply(lock.AppendEntry(nil, &e), func() {})
	if err != nil {
		return 0, fmt.Errorf("begin to serve: %w", err)
	}
	return out.Reign, nil
}

// leaderClient returns the address under which clients reach the leader, or "" when
// none is known.
func (g *generation) leaderClient() string {
	_, id := g.raft.LeaderWithID()
	if id == "" || string(id) == g.r.opts.NodeID {
		return ""
	}
	return g.r.member(string(id)).Client
}

// observe has the leading loop look again when raft knows another leader, and counts
// those that come.
func (g *generation) observe() (stop func()) {
	o := raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if news, ok := o.Data.(raft.LeaderObservation); ok {
			if news.LeaderID != "" {
				g.r.leaderChanges.Add(1)
			}
			g.leadership.poke()
		}
		return false
	})
	g.raft.RegisterObserver(o)
	return func() { g.raft.DeregisterObserver(o) }
}

// follow tells the service that this node does not serve.
func (r *Replica) follow(leader string) {
	if r.setServing(false) {
		r.log.Info("this node does not serve any more")
	}
	r.proposing.setReign(0, func() { r.service.Follow(leader) })
}

// elected tells the service that this node leads and can't serve yet.
func (r *Replica) elected() {
	r.setServing(false)
	r.proposing.setReign(0, r.service.Elected)
}

// serve tells the service that this node serves.
func (r *Replica) serve(reign uint64, self string) {
	r.setServing(true)
	r.proposing.setReign(reign, func() { r.service.Lead(self) })
}

func (r *Replica) setServing(serving bool) (changed bool) {
	changed = r.serving.Swap(serving) != serving
	if changed && r.opts.Observer != nil {
		r.opts.Observer.StandingChanged(serving)
	}
	return changed
}
