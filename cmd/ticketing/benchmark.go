package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/client"
)

const (
	// benchBackoff is the pause after an acquire that did not end in a ticket nor
	// wait for one: a busy or missing server must not be asked in a tight loop.
	benchBackoff = 5 * time.Millisecond
	// progressPeriod is the time between two progress lines.
	progressPeriod = 500 * time.Millisecond
	// heldLonger is how often, in grants, a loop lets others run while it holds its
	// key: else it holds it for a few nanoseconds, in which a second holder would
	// hardly be met. At each grant it would cost a tenth of the throughput.
	heldLonger = 64
	// cacheLine keeps what different workers write apart in memory, in bytes.
	cacheLine = 64
	// maxHistograms is how many histograms the loops share: few enough to stay in a
	// processor's cache, enough that two loops seldom meet in one.
	maxHistograms = 64
)

// benchmark is one measurement.
type benchmark struct {
	plan    benchPlan
	brokers []*client.Broker
	keys    []benchKey
	loops   []benchLoop
	latency []histogram // loop i's is i modulo their number
	stop    atomic.Bool
	took    time.Duration
}

// benchKey is a key and its check.
type benchKey struct {
	name   string
	holder atomic.Pointer[client.Ticket]
	last   atomic.Uint64 // the last token
	_      [cacheLine]byte
}

// benchLoop is one of the loops that take and give back locks, with its figures.
type benchLoop struct {
	pairs   atomic.Int64 // read while it runs, for the progress line
	faults  atomic.Int64
	errors  map[string]int64
	double  int64 // grants of a key that was held
	falling int64 // grants whose token was not above the key's last
	_       [cacheLine]byte
}

func newBenchmark(plan benchPlan, brokers []*client.Broker) *benchmark {
	b := &benchmark{plan: plan, brokers: brokers, loops: make([]benchLoop, plan.loops())}
	b.latency = make([]histogram, min(plan.loops(), maxHistograms))
	n := plan.keys
	if n == 0 {
		n = plan.loops()
	}
	b.keys = make([]benchKey, n)
	for i := range b.keys {
		b.keys[i].name = "bench-" + strconv.Itoa(i)
	}
	for i := range b.loops {
		b.loops[i].errors = make(map[string]int64)
	}
	return b
}

// run measures until the plan is done or ctx ends. Pairs that are under way then
// are finished.
func (b *benchmark) run(ctx context.Context, stderr io.Writer) {
	start := time.Now()
	var loops sync.WaitGroup
	for i := range b.loops {
		loops.Go(func() { b.loop(i) })
	}
	done := make(chan struct{})
	go func() { loops.Wait(); close(done) }()
	b.watch(ctx, stderr, start, done)
	b.took = time.Since(start)
}

// watch shows the progress and stops the loops in time.
func (b *benchmark) watch(ctx context.Context, stderr io.Writer, start time.Time, done <-chan struct{}) {
	var timeUp <-chan time.Time
	if b.plan.count == 0 {
		timeUp = time.After(b.plan.duration)
	}
	progress := newProgress(stderr)
	defer progress.clear()
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	ended := ctx.Done()
	for {
		select {
		case <-done:
			return
		case <-timeUp:
			b.stop.Store(true)
		case <-ended:
			b.stop.Store(true)
			ended = nil
		case <-ticker.C:
			progress.show(b.pairs(), b.errorCount(), time.Since(start))
		}
	}
}

// loop is worker i's part: take, check, give back.
func (b *benchmark) loop(i int) {
	l, latency := &b.loops[i], &b.latency[i%len(b.latency)]
	worker := i / b.plan.pipeline
	broker := b.brokers[worker%len(b.brokers)]
	ctx := context.Background() // watched by no goroutine: every call has its bound
	for n := 0; !b.stop.Load() && (b.plan.count == 0 || int64(n) < b.share(i)); n++ {
		key := &b.keys[i%len(b.keys)]
		if b.plan.keys > 0 {
			key = &b.keys[(i+n)%len(b.keys)]
		}
		start := time.Now()
		ticket, err := broker.Acquire(ctx, key.name, b.plan.wait, b.plan.lease, 0)
		took := time.Since(start)
		if err != nil {
			l.fail(err)
			if took < benchBackoff {
				time.Sleep(benchBackoff)
			}
			continue
		}
		latency.add(took)
		l.check(key, ticket)
		if b.plan.hold > 0 {
			time.Sleep(b.plan.hold)
		} else if n%heldLonger == 0 {
			runtime.Gosched()
		}
		key.holder.CompareAndSwap(ticket, nil)
		if err := ticket.Release(ctx); err != nil {
			l.fail(err)
			continue
		}
		l.pairs.Add(1)
	}
}

// share is how many of the plan's pairs loop i does.
func (b *benchmark) share(i int) int64 {
	n := int64(len(b.loops))
	share := b.plan.count / n
	if int64(i) < b.plan.count%n {
		share++
	}
	return share
}

// check holds that nobody else has the key and that its tokens rise. A ticket whose
// lease has run out, on a machine that stood still, may lawfully have a successor.
func (l *benchLoop) check(key *benchKey, ticket *client.Ticket) {
	if before := key.holder.Swap(ticket); before != nil && before.Remaining() > 0 {
		l.double++
	}
	if last := key.last.Swap(ticket.Token()); last >= ticket.Token() && ticket.Remaining() > 0 {
		l.falling++
	}
}

func (l *benchLoop) fail(err error) {
	l.errors[outcomeOf(err).kind]++
	l.faults.Add(1)
}

func (b *benchmark) pairs() int64 {
	var n int64
	for i := range b.loops {
		n += b.loops[i].pairs.Load()
	}
	return n
}

func (b *benchmark) errorCount() int64 {
	var n int64
	for i := range b.loops {
		n += b.loops[i].faults.Load()
	}
	return n
}

// progress is the line that a person watches. Where stderr is no terminal there is
// none.
type progress struct {
	w         io.Writer
	lastPairs int64
	lastAt    time.Duration
}

func newProgress(stderr io.Writer) *progress {
	if !isTerminal(stderr) {
		return &progress{}
	}
	return &progress{w: stderr}
}

func (p *progress) show(pairs, errors int64, at time.Duration) {
	if p.w == nil {
		return
	}
	rate := float64(pairs-p.lastPairs) / (at - p.lastAt).Seconds()
	p.lastPairs, p.lastAt = pairs, at
	fmt.Fprintf(p.w, "\r\x1b[K%5.1fs  %d pairs  %.0f pairs/s  %d errors", at.Seconds(), pairs, rate, errors)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
