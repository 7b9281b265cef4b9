package client

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// Bounds and times of nodes and their sessions (docs/CLIENT.md, section 4).
const (
	// baseSessions is how many sessions a node always has: one for immediate
	// attempts and releases, one for blocking acquires. So a failover finds both
	// open.
	baseSessions = 2
	// maxNodes bounds the nodes of a broker, those learned from hints included.
	maxNodes = 32
	// backoffFirst and backoffLongest bound the pause before a further dial.
	backoffFirst   = 100 * time.Millisecond
	backoffLongest = 3200 * time.Millisecond
	// stableTime is how long a session must have lived for its end not to count
	// as a failed dial.
	stableTime = backoffLongest
	// forgetAfter is how many dials in a row may fail until a learned node is
	// forgotten.
	forgetAfter = 8
)

// node is one server and the sessions to it. It is guarded by the broker's lock.
type node struct {
	addr       string
	configured bool // else learned from a hint
	slots      []*slot
	serving    []*session
	kept       *session // one of serving: for immediate attempts and releases
	noProbe    bool     // it answered a probe with something else than N

	extraFails int           // extra dials that failed in a row
	extraAfter time.Duration // no extra dial before
}

// slot is the place of one session: a goroutine that dials it, reads it, and dials
// again when it has ended.
type slot struct {
	node  *node
	extra bool          // beyond the base: not dialled again
	kick  chan struct{} // one slot: a hint named the node, so dial now

	// Guarded by the broker's lock.
	sess     *session // the open one, or nil
	dialling bool
	since    time.Duration // when the dial began
	fails    int           // dials that failed in a row
	refused  bool          // the last dial was refused for the client token
	err      error         // why there is no session; nil before the first dial ended
}

// addNode begins to keep sessions to addr. mu is held.
func (b *Broker) addNode(addr string, configured bool) {
	n := &node{addr: addr, configured: configured}
	b.nodes = append(b.nodes, n)
	for range baseSessions {
		b.addSlot(n, false)
	}
}

// addSlot starts the goroutine of one more session to n. mu is held.
func (b *Broker) addSlot(n *node, extra bool) {
	if b.closed {
		return
	}
	sl := &slot{node: n, extra: extra, kick: make(chan struct{}, 1)}
	n.slots = append(n.slots, sl)
	sl.dialling, sl.since = true, b.clock.mono()
	b.wg.Go(func() { b.keep(sl) })
}

// keep is a slot's goroutine.
func (b *Broker) keep(sl *slot) {
	for {
		s, err := b.open(sl)
		if err == nil {
			err = s.run()
		}
		pause, again := b.ended(sl, s, err)
		if !again || !b.sleep(sl, pause) {
			return
		}
		b.mu.Lock()
		sl.dialling, sl.since = !b.closed, b.clock.mono()
		b.unlock()
	}
}

// sleep waits for pause to pass, or less when a hint names the node. It returns
// false when the broker closes.
func (b *Broker) sleep(sl *slot, pause time.Duration) bool {
	// Hints can't make it dial more often than every backoffFirst.
	first := min(pause, backoffFirst)
	return b.sleepUntil(nil, first) && b.sleepUntil(sl.kick, pause-first)
}

func (b *Broker) sleepUntil(kick <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-kick:
	case <-b.ctx.Done():
		return false
	}
	return b.ctx.Err() == nil
}

// ended notes the end of a session, or of the attempt to open one, and says whether
// to dial again and after which pause.
func (b *Broker) ended(sl *slot, s *session, err error) (pause time.Duration, again bool) {
	b.mu.Lock()
	defer b.unlock()
	now := b.clock.mono()
	n := sl.node
	ready := s != nil && s.readyAt > 0
	sl.sess, sl.dialling = nil, false
	b.tellEnd(sl, s, err, now)

	switch {
	case ready && (errors.Is(err, errNeighbour) || errors.Is(err, errBrokerClosed)):
		sl.fails = 0 // our own doing
	case ready && (errors.Is(err, errRetired) || now-s.readyAt >= stableTime):
		sl.fails = 0
		pause = backoff(0)
	default:
		pause = backoff(sl.fails)
		sl.fails++
	}
	sl.err = err
	sl.refused = !ready && errors.Is(err, ErrAuthRefused)
	if sl.refused || errors.Is(err, errNotACluster) {
		pause = backoffLongest
	}
	if sl.extra && !ready {
		n.extraAfter = now + backoff(n.extraFails)
		n.extraFails++
	}

	again = !b.closed && !sl.extra && (n.configured || sl.fails < forgetAfter)
	if !again {
		b.removeSlot(sl)
	}
	b.refuseParked(now)
	// What waited for this dial is not held back any longer.
	b.unpark(&b.acquires, now)
	b.unpark(&b.releases, now)
	b.signal()
	return pause, again
}

func (b *Broker) removeSlot(sl *slot) {
	n := sl.node
	n.slots = slices.DeleteFunc(n.slots, func(o *slot) bool { return o == sl })
	if len(n.slots) > 0 || n.configured {
		return
	}
	b.nodes = slices.DeleteFunc(b.nodes, func(o *node) bool { return o == n })
	if b.leader == n {
		b.leader = nil
	}
}

// backoff is the pause after the given number of failed dials before: doubling,
// with jitter, so that many clients don't dial in step.
func backoff(fails int) time.Duration {
	ceil := min(2*backoffFirst<<min(fails, 8), backoffLongest)
	return ceil/2 + rand.N(ceil/2+1)
}
