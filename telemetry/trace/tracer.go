package trace

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

const (
	// pendingMax bounds the requests that are over and not passed on yet. More are dropped: it
	// is a hundred times what gathers at 1 % of 100,000 a second.
	pendingMax = 4096
	// gathering is how long requests that are over gather before they are passed on: to wake a
	// goroutine for each costs more than its trace. Whoever looks does not notice.
	gathering = 20 * time.Millisecond
	// batchMax is how many traces are handed to a collector's exporter at a time.
	batchMax = 256
	// keptMax bounds the tokens that are remembered because their acquire was kept for being
	// slow. One that is forgotten has an end that is not kept, so nothing dangles.
	keptMax = 16384
)

// Config is what a Tracer is made of.
type Config struct {
	// Sample is the part of the acquires that is kept, from 0 to 1.
	Sample float64
	// Slow is the wait from which an acquire is always kept; 0 is DefaultSlow.
	Slow time.Duration
	// HashKeys has keys appear as their hash only.
	HashKeys bool
	// Node is this node's name, "" for a single server.
	Node string
	// Salt is the same on all nodes of a cluster, and differs between clusters.
	Salt string
	// Exporter takes the traces elsewhere; nil for nowhere. The Tracer ends it.
	Exporter *Exporter
	// Console is written to for people; nil for nobody. One that does not take what is written
	// costs traces, which are counted as dropped.
	Console io.Writer
}

// DefaultSlow is the wait from which an acquire is kept whatever the sample.
const DefaultSlow = time.Second

// Why a trace is kept.
type Why uint8

// The reasons to keep a trace.
const (
	ByRatio Why = iota
	BySlowness
	ByDoubt // its outcome is unknown
	ByLink  // another trace that is kept links to it
	whyCount
)

// String returns the reason as metrics and attributes have it.
func (w Why) String() string {
	return [...]string{ByRatio: "ratio", BySlowness: "slow", ByDoubt: "unknown", ByLink: "link"}[w]
}

// Tracer keeps the traces of one node. Acquire, Release and LeaseEnded are called as the
// service's observer is, one after the other, and neither block nor call it. A nil Tracer
// keeps nothing.
type Tracer struct {
	config Config
	salt   salt
	ratio  ratio
	kept   tokens
	ring   *Ring

	dropped atomic.Uint64
	counts  [whyCount]atomic.Uint64
	wake    chan struct{} // something is pending, or the tracer is closed; of capacity one
	passed  chan struct{} // closed when nothing is passed on any more

	mu      sync.Mutex
	pending []request
	spare   []request // the memory of those that were passed on last
	closed  bool
}

// request is one that is over, and whose trace is kept.
type request struct {
	id       id
	why      Why
	acquire  *service.AcquireEvent // nil for an end
	answered time.Time             // when the answer was written
	linked   bool                  // of an end: the acquire that was granted is kept too

	key string // of an end
	end service.End
}

// took returns how long an acquire took, its answer included.
func (q *request) took() time.Duration { return q.answered.Sub(q.acquire.At) }

// New starts a Tracer. Close ends it.
func New(c Config) *Tracer {
	if c.Slow == 0 {
		c.Slow = DefaultSlow
	}
	t := &Tracer{
		config: c, salt: salt(hash(c.Salt)), ratio: newRatio(c.Sample),
		wake: make(chan struct{}, 1), passed: make(chan struct{}),
	}
	t.ring = newRing(t.traceOf)
	go t.pass()
	return t
}

// Acquire takes the end of an acquire. It returns its trace's id, and what is to be called
// when its answer has been written; zero and nil when no trace of it is kept.
func (t *Tracer) Acquire(e service.AcquireEvent) (id trace.TraceID, answered func()) {
	if t == nil {
		return id, nil
	}
	low := rand.Uint64()
	if e.Token != 0 {
		low = t.salt.acquireLow(e.Token)
	}
	why := ByRatio
	switch {
	case t.ratio.keeps(low):
	case e.Result == service.AcquireUnknown:
		why = ByDoubt
	case e.Waited >= t.config.Slow:
		why = BySlowness
	default:
		return id, nil // most come by here
	}
	p := request{why: why}
	if e.Token != 0 {
		p.id = t.salt.acquire(e.Token)
	} else {
		p.id = newID(rand.Uint64(), low, rand.Uint64())
	}
	return p.id.trace, t.keep(p, e)
}

// keep keeps an acquire when its answer has been written.
func (t *Tracer) keep(p request, e service.AcquireEvent) (answered func()) {
	if e.Token != 0 && p.why != ByRatio {
		t.kept.add(e.Token)
	}
	if e.Freed.Token != 0 && !t.keeps(e.Freed.Token) {
		t.put(request{id: t.salt.end(e.Freed.Token), why: ByLink, key: e.Key, end: e.Freed})
	}
	p.acquire = &e
	return func() {
		p.answered = time.Now()
		t.put(p)
	}
}

// Release takes the end of a release.
func (t *Tracer) Release(e service.ReleaseEvent) {
	if t != nil && e.Current {
		t.ended(e.Key, e.End)
	}
}

// LeaseEnded takes the end of a lease.
func (t *Tracer) LeaseEnded(e service.LeaseEvent) {
	if t != nil {
		t.ended(e.Key, e.End)
	}
}

func (t *Tracer) ended(key string, e service.End) {
	if t.keeps(e.Token) {
		t.put(request{id: t.salt.end(e.Token), why: ByLink, key: key, end: e, linked: true})
	}
}

// keeps says whether the acquire that was granted by a token is kept.
func (t *Tracer) keeps(token uint64) bool {
	return t.ratio.keeps(t.salt.acquireLow(token)) || t.kept.has(token)
}

// put hands something over to be built, or drops it.
func (t *Tracer) put(p request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
	case len(t.pending) == pendingMax:
		t.dropped.Add(1)
	default:
		t.counts[p.why].Add(1)
		t.pending = append(t.pending, p)
		if len(t.pending) == 1 {
			t.awaken()
		}
	}
}

// awaken has pass look.
func (t *Tracer) awaken() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// pass passes on what is over, until the tracer is closed.
func (t *Tracer) pass() {
	defer close(t.passed)
	for range t.wake {
		time.Sleep(gathering)
		list, closed := t.take()
		for len(list) > 0 {
			n := min(len(list), batchMax)
			t.tell(list[:n])
			list = list[n:]
		}
		if closed {
			return
		}
	}
}

// take returns what is pending, which stays as it is until the next take.
func (t *Tracer) take() (list []request, closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list = t.pending
	clear(t.spare[:cap(t.spare)])
	t.pending, t.spare = t.spare[:0], list
	return list, t.closed
}

func (t *Tracer) tell(list []request) {
	t.ring.add(list)
	if t.config.Console == nil && t.config.Exporter == nil {
		return
	}
	traces := make([]*Trace, len(list))
	for i := range list {
		traces[i] = t.traceOf(&list[i])
		if t.config.Console != nil {
			console{t.config.Console}.write(traces[i])
		}
	}
	if t.config.Exporter != nil {
		t.config.Exporter.export(traces)
	}
}

// Ring returns the traces that are kept in memory; nil without a Tracer.
func (t *Tracer) Ring() *Ring {
	if t == nil {
		return nil
	}
	return t.ring
}

// Exporter returns what sends the traces to a collector; nil when nothing does.
func (t *Tracer) Exporter() *Exporter {
	if t == nil {
		return nil
	}
	return t.config.Exporter
}

// Dropped returns how many traces were dropped before they were passed on.
func (t *Tracer) Dropped() uint64 {
	if t == nil {
		return 0
	}
	return t.dropped.Load()
}

// Kept returns how many traces were kept for a reason.
func (t *Tracer) Kept(w Why) uint64 {
	if t == nil {
		return 0
	}
	return t.counts[w].Load()
}

// Close passes on what is over and ends the exporter, as far as the context lets it. What
// comes later is dropped.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	t.closed = true
	t.awaken()
	t.mu.Unlock()
	if !t.awaitPassed(ctx) {
		// The exporter stays as it is, since traces may still come to it.
		return errors.New("the last traces were not taken by the standard output")
	}
	if t.config.Exporter == nil {
		return nil
	}
	return t.config.Exporter.close(ctx)
}

// awaitPassed waits until all is passed on. Only a console can keep them from it.
func (t *Tracer) awaitPassed(ctx context.Context) bool {
	if t.config.Console == nil {
		<-t.passed
		return true
	}
	select {
	case <-t.passed:
		return true
	case <-ctx.Done():
		return false
	}
}

// tokens remembers the last keptMax tokens.
type tokens struct {
	set   map[uint64]struct{}
	order []uint64
	next  int
}

func (k *tokens) add(token uint64) {
	if k.set == nil {
		k.set = make(map[uint64]struct{})
	}
	k.set[token] = struct{}{}
	if len(k.order) < keptMax {
		k.order = append(k.order, token)
		return
	}
	delete(k.set, k.order[k.next])
	k.order[k.next] = token
	k.next = (k.next + 1) % keptMax
}

func (k *tokens) has(token uint64) bool {
	_, ok := k.set[token]
	return ok
}
