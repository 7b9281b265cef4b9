package coretest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Times of the network.
const (
	// latency is one way between two nodes when nothing is slow.
	latency = 200 * time.Microsecond
	// rpcTimeout is how long a call waits for its answer; a snapshot has ten times that.
	rpcTimeout = 2 * time.Second
	// inFlight bounds the calls of a pipeline that have no answer yet.
	inFlight = 64
)

var (
	errTimedOut = errors.New("no answer in time")
	errClosed   = errors.New("the transport is closed")
	errNobody   = errors.New("connection refused")
	errVoteless = errors.New("the node has no vote to give")
)

// direction is the way from one node to another.
type direction struct{ from, to string }

// way is how one direction fares.
type way struct {
	cut   bool
	delay time.Duration // besides latency; each message takes it to twice of it
	loss  float64       // the share of messages that are lost
}

// Network joins the nodes of a cluster in memory. Directions are cut, slowed and made lossy
// one by one, so that a node may hear another that does not hear it. A message that is lost
// is a connection that hangs: its caller learns of it by its time-out.
type Network struct {
	mu     sync.Mutex
	random *rand.Rand
	ends   map[string]*transport
	ways   map[direction]*way
	held   map[string]chan struct{} // nodes that do not run; closed when they do again
	wg     sync.WaitGroup           // messages under way, and pipelines
}

// NewNetwork returns a network of nobody, whose accidents follow from the seed.
func NewNetwork(seed uint64) *Network {
	return &Network{
		random: rand.New(rand.NewPCG(seed, 1)),
		ends:   make(map[string]*transport),
		ways:   make(map[direction]*way),
		held:   make(map[string]chan struct{}),
	}
}

// Join returns a new transport for a node, whose name is its address too. An earlier one of
// that name is cut off. mayVote says whether the node answers a request for its vote.
func (n *Network) Join(name string, mayVote func() bool) raft.Transport {
	t := &transport{net: n, name: name, mayVote: mayVote, inbox: make(chan raft.RPC), closed: make(chan struct{})}
	n.mu.Lock()
	old := n.ends[name]
	n.ends[name] = t
	n.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return t
}

// Cut cuts the way from one node to another, that way only.
func (n *Network) Cut(from, to string) { n.change(from, to, func(w *way) { w.cut = true }) }

// Slow delays each message from one node to another by at least so much.
func (n *Network) Slow(from, to string, delay time.Duration) {
	n.change(from, to, func(w *way) { w.delay = delay })
}

// Lossy loses a share of the messages from one node to another.
func (n *Network) Lossy(from, to string, loss float64) {
	n.change(from, to, func(w *way) { w.loss = loss })
}

func (n *Network) change(from, to string, change func(*way)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.ways[direction{from, to}]
	if w == nil {
		w = &way{}
		n.ways[direction{from, to}] = w
	}
	change(w)
}

// Close ends every transport and waits until nothing is under way.
func (n *Network) Close() {
	n.mu.Lock()
	for _, end := range n.ends {
		end.Close()
	}
	n.mu.Unlock()
	n.wg.Wait()
}

// Heal mends every way.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.ways)
}

// Hold keeps everything to and from a node back until Resume: the node does not run.
func (n *Network) Hold(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held[name] == nil {
		n.held[name] = make(chan struct{})
	}
}

// Resume lets go what Hold kept back.
func (n *Network) Resume(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if held := n.held[name]; held != nil {
		close(held)
		delete(n.held, name)
	}
}

// travel takes a message one way. It returns the transport that it reached, or why it
// reached none: errTimedOut when it is lost.
func (n *Network) travel(from *transport, to string) (*transport, error) {
	if err := n.awaitRunning(from.name, from.closed); err != nil {
		return nil, err
	}
	if from.isClosed() {
		return nil, errClosed
	}
	n.mu.Lock()
	w := n.ways[direction{from.name, to}]
	delay := latency
	lost := false
	if w != nil {
		lost = w.cut || n.random.Float64() < w.loss
		if w.delay > 0 {
			delay += w.delay + time.Duration(n.random.Int64N(int64(w.delay)))
		}
	}
	n.mu.Unlock()
	if lost {
		return nil, errTimedOut
	}
	time.Sleep(delay)

	if err := n.awaitRunning(to, from.closed); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.ways[direction{from.name, to}]; w != nil && w.cut {
		return nil, errTimedOut // it was on its way when the way was cut
	}
	end := n.ends[to]
	if end == nil || end.isClosed() {
		return nil, fmt.Errorf("%s: %w", to, errNobody)
	}
	return end, nil
}

// awaitRunning waits while a node is held.
func (n *Network) awaitRunning(name string, closed <-chan struct{}) error {
	n.mu.Lock()
	held := n.held[name]
	n.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-closed:
		return errClosed
	}
}

// leave ends the transport of a node whose process is gone.
func (n *Network) leave(name string) {
	n.mu.Lock()
	end := n.ends[name]
	n.mu.Unlock()
	if end != nil {
		end.Close()
	}
}

// reaches says whether a question and its answer pass between two nodes.
func (n *Network) reaches(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range []direction{{from, to}, {to, from}} {
		if w := n.ways[d]; w != nil && w.cut {
			return false
		}
	}
	return n.held[from] == nil && n.held[to] == nil
}

// resumed returns a channel that is closed when a node runs.
func (n *Network) resumed(name string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if held := n.held[name]; held != nil {
		return held
	}
	runs := make(chan struct{})
	close(runs)
	return runs
}
