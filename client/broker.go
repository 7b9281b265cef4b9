package client

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// DefaultLease is a lease for callers that have no better figure: what a crashed
// holder costs everybody else.
const DefaultLease = 30 * time.Second

// Broker is a process's connection to a lock server or a cluster of them. It is
// safe for use by any number of goroutines.
type Broker struct {
	cfg   Config
	clock *clock
	ctx   context.Context // ends at Close; dials depend on it
	stop  context.CancelFunc
	calls sync.Pool // of *call, so that a pair allocates none
	spans tracing
	poke  chan struct{} // one slot: the watch must look earlier than it planned

	// Every goroutine is in one of the two. The reporter ends last, so that it
	// tells of the others' ends.
	wg        sync.WaitGroup
	reporting sync.WaitGroup
	notes     chan note // what the reporter tells the application

	gone     chan struct{} // closed when Close is done
	closeErr error         // what it returned

	// mu guards what follows, and everything in calls, sessions, slots and nodes.
	// It is held for moments only, never over a system call: unlock does what
	// must follow.
	mu       sync.Mutex
	closing  bool // Close was called: no new calls
	closed   bool // sessions end, nothing is dialled
	silent   bool // notes is closed
	owner    uint64
	acquires lane
	releases lane

	nodes   []*node // the configured ones first
	leader  *node   // whose sessions serve, or did last; nil when another is named
	changed chan struct{}

	compensations int // waiting or under way
	dropped       uint64

	held      [wire.MaxLease + 1]ticketList // by lease, so that each ends in order
	heldCount int
	watched   map[*Ticket]struct{} // whose context was asked for

	drained    chan struct{} // closed once Close has nothing left to release
	isDrained  bool
	unreleased int

	next     time.Duration // when the watch looks again
	nextTick time.Duration // when it looks for ended tickets again
	sweeping bool

	// Gathered under the lock, done by unlock.
	finished chain
	hangups  []net.Conn
}

// chain is a list of finished calls, linked by next.
type chain struct{ head, tail *call }

// Connect makes a broker with the default configuration for the given addresses.
func Connect(addrs ...string) (*Broker, error) { return New(Config{Addrs: addrs}) }

// New makes a broker. It does not wait for a connection: connecting, reconnecting
// and following the leader go on behind it until Close (docs/CLIENT.md, section
// 4). It fails only on a bad configuration, with every fault at once (ErrConfig).
func New(cfg Config) (*Broker, error) {
	b, err := newBroker(cfg)
	if err != nil {
		return nil, err
	}
	b.start()
	return b, nil
}

func newBroker(cfg Config) (*Broker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		cfg:      cfg,
		clock:    newClock(),
		spans:    newTracing(cfg.TracerProvider),
		poke:     make(chan struct{}, 1),
		notes:    make(chan note, maxNotes),
		acquires: lane{limit: cfg.MaxPending},
		releases: lane{limit: maxReleases},
		changed:  make(chan struct{}),
		watched:  make(map[*Ticket]struct{}),
		drained:  make(chan struct{}),
		gone:     make(chan struct{}),
		next:     never,
	}
	b.calls.New = func() any { return &call{done: make(chan struct{}, 1)} }
	return b, nil
}

func (b *Broker) start() {
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.wg.Go(b.watch)
	b.reporting.Go(b.report)
	b.mu.Lock()
	for _, addr := range b.cfg.Addrs {
		b.addNode(addr, true)
	}
	b.unlock()
}

// unlock releases mu and does what was gathered under it: calls get their
// outcomes, and connections of ended sessions are closed.
func (b *Broker) unlock() {
	c, hangups := b.finished.head, b.hangups
	b.finished, b.hangups = chain{}, nil
	b.mu.Unlock()
	for c != nil {
		next := c.next // c is its caller's from the send on
		c.next = nil
		if c.purpose == forCaller {
			c.done <- struct{}{}
		} else {
			b.recycle(c)
		}
		c = next
	}
	for _, conn := range hangups {
		conn.Close()
	}
}

func (b *Broker) recycle(c *call) {
	c.reset()
	b.calls.Put(c)
}

// signal wakes everybody who waits for the broker's condition to change.
func (b *Broker) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// WaitReady returns nil once some session can serve. Else it returns an error that
// says why none can: ErrAuthRefused at once while every server refuses the client
// token, ErrNotConnected when ctx ends (also the context's own error), ErrClosed.
func (b *Broker) WaitReady(ctx context.Context) error {
	began := b.clock.mono()
	for {
		b.mu.Lock()
		changed := b.changed
		ready, refused, ending := b.serves(), b.refused(), b.closing
		b.unlock()
		switch {
		case ending:
			return fmt.Errorf("wait ready: %w", ErrClosed)
		case ready:
			return nil
		case refused:
			why, _ := b.condition()
			return fmt.Errorf("wait ready: %w: %s", ErrAuthRefused, why)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			why, kind := b.condition()
			took := (b.clock.mono() - began).Round(time.Millisecond)
			return fmt.Errorf("wait ready, after %s: %w: %w: %s", took, ctx.Err(), kind, why)
		}
	}
}

// Stats returns the broker's counts.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.unlock()
	s := Stats{
		Pending:              b.acquires.used,
		Held:                 b.heldCount,
		Compensations:        b.compensations,
		CompensationsDropped: b.dropped,
	}
	for _, n := range b.nodes {
		s.Serving += len(n.serving)
		for _, sl := range n.slots {
			if sl.sess != nil && sl.sess.state != sessionOpening {
				s.Sessions++
			}
		}
	}
	return s
}
