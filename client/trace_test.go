package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ticketing-io/ticketing/core/wire"
)

// recorder is a tracer provider that keeps every span, or tells everybody that it
// records none.
type recorder struct {
	noop.TracerProvider
	mute bool

	mu    sync.Mutex
	spans []*recorded // in the order of their starts
	open  int
}

type recorderTracer struct {
	noop.Tracer
	r *recorder
}

type recorded struct {
	noop.Span
	r          *recorder
	parent     *recorded
	name       string
	kind       trace.SpanKind
	start, end time.Time
	attrs      map[attribute.Key]attribute.Value
	status     codes.Code
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return recorderTracer{r: r} }

func (t recorderTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	cfg := trace.NewSpanStartConfig(opts...)
	s := &recorded{r: t.r, name: name, kind: cfg.SpanKind(), start: cfg.Timestamp(), attrs: map[attribute.Key]attribute.Value{}}
	s.parent, _ = trace.SpanFromContext(ctx).(*recorded)
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.r.spans = append(t.r.spans, s)
	t.r.open++
	return trace.ContextWithSpan(ctx, s), s
}

func (s *recorded) IsRecording() bool                { return !s.r.mute }
func (s *recorded) SetStatus(c codes.Code, _ string) { s.status = c }

func (s *recorded) SetAttributes(attrs ...attribute.KeyValue) {
	for _, a := range attrs {
		s.attrs[a.Key] = a.Value
	}
}

func (s *recorded) End(opts ...trace.SpanEndOption) {
	cfg := trace.NewSpanEndConfig(opts...)
	s.end = cfg.Timestamp()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.open--
}

// traced is a lab with a broker whose spans are recorded.
func traced(r *recorder) func(*Config) { return func(c *Config) { c.TracerProvider = r } }

// root returns the last span with a name; there must be one, and all must have ended.
func (r *recorder) root(t testing.TB, name string) *recorded {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != 0 {
		t.Fatalf("%d spans have not ended", r.open)
	}
	for i := len(r.spans) - 1; i >= 0; i-- {
		if r.spans[i].name == name {
			return r.spans[i]
		}
	}
	t.Fatalf("there is no span %s", name)
	return nil
}

// children returns the children of a span, as "name from-to" since its start.
func (s *recorded) children() string {
	var all []string
	for _, c := range s.r.spans {
		if c.parent == s {
			all = append(all, fmt.Sprintf("%s %s-%s", c.name, c.start.Sub(s.start), c.end.Sub(s.start)))
		}
	}
	return strings.Join(all, ", ")
}

func (s *recorded) wantChildren(t testing.TB, want string) {
	t.Helper()
	if got := s.children(); got != want {
		t.Errorf("%s has the children\n %s\nwant\n %s", s.name, got, want)
	}
}

// want checks the attributes, all of them, and whether it is an error.
func (s *recorded) want(t testing.TB, failed bool, attrs map[attribute.Key]any) {
	t.Helper()
	if got := s.status == codes.Error; got != failed {
		t.Errorf("%s is an error: %v, want %v", s.name, got, failed)
	}
	got := map[attribute.Key]any{}
	for k, v := range s.attrs {
		got[k] = v.AsInterface()
	}
	if fmt.Sprint(got) != fmt.Sprint(attrs) {
		t.Errorf("%s has the attributes\n %v\nwant\n %v", s.name, got, attrs)
	}
}

type attrs = map[attribute.Key]any

func TestTheSpanOfAnAcquireSaysWhereItsTimeWent(t *testing.T) {
	inLab(t, func(l *lab) {
		r := &recorder{}
		b, _, kept, block := l.open(traced(r))
		ctx, caller := r.Tracer("").Start(context.Background(), "job", trace.WithTimestamp(time.Now()))
		var ticket *Ticket
		a := l.begin(func(_ context.Context, a *attempt) {
			a.ticket, a.err = b.Acquire(ctx, "order-42", 5*time.Second, DefaultLease, 0)
		})
		req := block.acquire("order-42")
		l.sleep(3 * time.Second) // somebody else has the lock
		block.send(grant(req, 1<<63+5))
		ticket = a.granted()
		rel := l.begin(func(_ context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		kept.release("order-42", 1<<63+5)
		l.sleep(time.Second)
		kept.send(answer(wire.OpRelease, wire.Request{Token: 1<<63 + 5, Key: "order-42"}))
		wantKinds(t, rel.wait().err)
		caller.End()

		acquire := r.root(t, "client.acquire")
		if acquire.parent != caller || acquire.kind != trace.SpanKindClient {
			t.Errorf("its parent is %v, its kind %s", acquire.parent, acquire.kind)
		}
		acquire.wantChildren(t, "queue 0s-0s, write 0s-0s, reply 0s-3s")
		acquire.want(t, false, attrs{
			"ticketing.key": "order-42", "ticketing.owner": fmt.Sprint(ticket.Owner()), "ticketing.token": "9223372036854775813",
			"ticketing.wait_s": 5.0, "ticketing.lease_s": 30.0, "ticketing.outcome": "granted",
		})
		release := r.root(t, "client.release")
		if release.parent != caller || release.kind != trace.SpanKindClient {
			t.Errorf("its parent is %v, its kind %s", release.parent, release.kind)
		}
		release.wantChildren(t, "queue 0s-0s, write 0s-0s, reply 0s-1s")
		release.want(t, false, attrs{
			"ticketing.key": "order-42", "ticketing.owner": fmt.Sprint(ticket.Owner()), "ticketing.token": "9223372036854775813",
			"ticketing.outcome": "released",
		})
	})
}

func TestASpanTellsTheWaitForAConnection(t *testing.T) {
	inLab(t, func(l *lab) {
		r := &recorder{}
		n := l.node(here)
		b := l.broker(traced(r))
		a := l.acquire(b, "k", 0)
		l.sleep(2 * time.Second)
		p := n.session(single)
		p.send(grant(p.acquire("k"), 1))
		a.granted()
		r.root(t, "client.acquire").wantChildren(t, "dial 0s-2s, queue 2s-2s, write 2s-2s, reply 2s-2s")
	})
}

func TestASpanTellsTheWaitForAPlaceAndForTheWriter(t *testing.T) {
	inLab(t, func(l *lab) {
		r := &recorder{}
		b, _, _, block := l.open(traced(r), func(c *Config) { c.MaxPending = 2 })
		block.c.in.setRoom(0)
		slow := l.acquire(b, "slow", 20*time.Second)
		queued := l.acquire(b, "queued", 20*time.Second)
		lined := l.acquire(b, "lined", 20*time.Second)
		l.sleep(time.Second)
		block.c.in.setRoom(1 << 20)
		block.send(grant(block.acquire("slow"), 1))
		slow.granted()
		block.send(grant(block.acquire("queued"), 2))
		queued.granted()
		block.send(grant(block.acquire("lined"), 3))
		lined.granted()
		for key, want := range map[string]string{
			"slow":   "queue 0s-0s, write 0s-1s, reply 1s-1s",
			"queued": "queue 0s-1s, write 1s-1s, reply 1s-1s",
			"lined":  "place 0s-1s, queue 1s-1s, write 1s-1s, reply 1s-1s",
		} {
			for _, s := range r.spans {
				if s.name == "client.acquire" && s.attrs["ticketing.key"].AsString() == key {
					s.wantChildren(t, want)
				}
			}
		}
	})
}

func TestASpanHasTheLastAttemptsPartsAndSaysHowManyThereWere(t *testing.T) {
	inLab(t, func(l *lab) {
		r := &recorder{}
		b, _, kept, block := l.open(traced(r))
		a := l.release(b, "k", 7)
		kept.release("k", 7)
		l.sleep(time.Second)
		kept.c.Close()
		block.send(answer(wire.OpNotCurrent, block.release("k", 7)))
		a.wait()
		s := r.root(t, "client.release")
		s.wantChildren(t, "dial 1s-1.01s, queue 1.01s-1.01s, write 1.01s-1.01s, reply 1.01s-1.01s")
		s.want(t, false, attrs{"ticketing.key": "k", "ticketing.token": "7", "ticketing.outcome": "not_current", "ticketing.attempts": 2})
	})
}

func TestASpanIsAnErrorOnlyWhenNobodyKnowsOrNobodyCouldBeAsked(t *testing.T) {
	for _, test := range []struct {
		outcome string
		failed  bool
		do      func(l *lab, b *Broker, kept *peer)
	}{
		{"busy", false, func(l *lab, b *Broker, kept *peer) {
			a := l.acquire(b, "k", 0)
			kept.send(answer(wire.OpBusy, kept.acquire("k")))
			a.fails("busy")
		}},
		{"timeout", false, func(l *lab, b *Broker, kept *peer) {
			a := l.acquire(b, "k", 0)
			kept.send(answer(wire.OpTimeout, kept.acquire("k")))
			a.fails("timeout")
		}},
		{"cancelled", false, func(l *lab, b *Broker, _ *peer) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			b.Acquire(ctx, "k", 0, DefaultLease, 0)
		}},
		{"closed", false, func(l *lab, b *Broker, _ *peer) {
			b.Close()
			b.Acquire(context.Background(), "k", 0, DefaultLease, 0)
		}},
		{"insufficient_lease", false, func(l *lab, b *Broker, kept *peer) {
			a := l.acquireFor(b, "k", 0, 3*time.Second, 3*time.Second)
			req := kept.acquire("k")
			l.sleep(time.Second)
			kept.send(grant(req, 1))
			a.fails("insufficient lease")
		}},
		{"indeterminate", true, func(l *lab, b *Broker, kept *peer) {
			a := l.acquire(b, "k", 0)
			kept.acquire("k")
			a.cancel()
			a.fails("indeterminate", "context canceled")
		}},
		{"indeterminate", true, func(l *lab, b *Broker, kept *peer) {
			a := l.acquire(b, "k", 0)
			kept.acquire("k")
			kept.c.Close()
			a.fails("indeterminate")
		}},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			inLab(t, func(l *lab) {
				r := &recorder{}
				b, _, kept, _ := l.open(traced(r))
				test.do(l, b, kept)
				s := r.root(t, "client.acquire")
				if got := s.attrs["ticketing.outcome"].AsString(); got != test.outcome || (s.status == codes.Error) != test.failed {
					t.Errorf("the outcome is %q, the status %s; want %q, an error: %v", got, s.status, test.outcome, test.failed)
				}
			})
		})
	}
	t.Run("not_connected", func(t *testing.T) {
		inLab(t, func(l *lab) {
			r := &recorder{}
			l.acquire(l.broker(traced(r)), "k", 2*time.Second).fails("timeout", "not connected")
			s := r.root(t, "client.acquire")
			s.wantChildren(t, "dial 0s-2s")
			s.want(t, true, attrs{"ticketing.key": "k", "ticketing.owner": "1", "ticketing.wait_s": 2.0, "ticketing.lease_s": 30.0, "ticketing.outcome": "not_connected"})
		})
	})
	t.Run("invalid_key", func(t *testing.T) {
		inLab(t, func(l *lab) {
			r := &recorder{}
			l.acquire(l.broker(traced(r)), strings.Repeat("k", 1<<10), 0).fails("invalid key")
			r.root(t, "client.acquire").want(t, false, attrs{"ticketing.wait_s": 0.0, "ticketing.lease_s": 30.0, "ticketing.outcome": "invalid_key"})
		})
	})
}

func TestEveryKindOfErrorHasAnOutcome(t *testing.T) {
	for name, kind := range kinds {
		switch kind {
		case ErrConfig, ErrProtocol, context.Canceled, context.DeadlineExceeded:
			continue // never an error of a call on their own
		}
		if outcome, _ := outcomeOf(kind, ""); strings.ReplaceAll(outcome, "_", " ") != strings.Replace(name, "authentication", "auth", 1) {
			t.Errorf("%s has the outcome %q", name, outcome)
		}
	}
}

func TestManyCallsAtOnceHaveASpanEach(t *testing.T) {
	inLab(t, func(l *lab) {
		r := &recorder{}
		l.node(here).set(func(n *fakeNode) { n.auto = simple(single) })
		b := l.broker(traced(r))
		const callers, calls = 32, 20
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range calls {
					ticket, err := b.Acquire(context.Background(), fmt.Sprint("k", i), time.Minute, DefaultLease, 0)
					if err != nil {
						t.Error(err)
						return
					}
					ticket.Close()
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		count := map[string]int{}
		for _, s := range r.spans {
			count[s.name]++
			if s.end.Before(s.start) || s.parent != nil && (s.start.Before(s.parent.start) || s.end.After(s.parent.end)) {
				t.Errorf("%s is from %s to %s, outside of its parent", s.name, s.start, s.end)
			}
		}
		for _, name := range []string{"client.acquire", "client.release"} {
			if count[name] != callers*calls {
				t.Errorf("%d spans %s, want %d", count[name], name, callers*calls)
			}
		}
		for _, name := range []string{"queue", "write", "reply"} {
			if count[name] != 2*callers*calls {
				t.Errorf("%d spans %s, want %d", count[name], name, 2*callers*calls)
			}
		}
	})
}

func TestASpanThatNobodyRecordsHasNoPartsAndEnds(t *testing.T) {
	inLab(t, func(l *lab) {
		r := &recorder{mute: true}
		l.node(here).set(func(n *fakeNode) { n.auto = simple(single) })
		l.acquire(l.broker(traced(r)), "k", 0).granted()
		if s := r.root(t, "client.acquire"); len(r.spans) != 1 || len(s.attrs) != 0 {
			t.Errorf("%d spans, %d attributes", len(r.spans), len(s.attrs))
		}
	})
}

// muteButFor is a provider that records what comes below a span of its recorder only: as
// the process's global one it leaves the other tests alone.
type muteButFor struct {
	noop.TracerProvider
	r *recorder
}

type muteTracer struct {
	noop.Tracer
	r *recorder
}

func (m muteButFor) Tracer(string, ...trace.TracerOption) trace.Tracer { return muteTracer{r: m.r} }

func (t muteTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if _, ours := trace.SpanFromContext(ctx).(*recorded); !ours {
		return ctx, noop.Span{}
	}
	return recorderTracer{r: t.r}.Start(ctx, name, opts...)
}

func TestWithoutAProviderNothingIsAllocatedUntilOneIsSet(t *testing.T) {
	if !isStandIn(otel.GetTracerProvider()) {
		t.Skip("a provider is set, by an earlier run of this test: there is no way back")
	}
	ctx := context.Background()
	free := func(name string, spans tracing) {
		t.Helper()
		var s *span
		if n := testing.AllocsPerRun(100, func() { s = spans.start(ctx, spanAcquire, time.Second) }); n != 0 || s != nil {
			t.Errorf("%s: %v allocations, a span: %v", name, n, s != nil)
		}
	}
	global := newTracing(nil)
	free("no provider is set", global)
	free("there is to be none", newTracing(noop.NewTracerProvider()))

	r := &recorder{}
	otel.SetTracerProvider(muteButFor{r: r})
	ctx, caller := recorderTracer{r: r}.Start(ctx, "job")
	s := global.start(ctx, spanAcquire, time.Second)
	if s == nil || s.Span.(*recorded).parent != caller {
		t.Error("a provider that is set later gets no spans")
	}
}
