package trace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// show writes a trace for a reader, its times counted from start.
func show(t *Trace) string {
	var b strings.Builder
	for _, s := range t.Spans {
		indent := ""
		if s.Parent.IsValid() {
			indent = "  "
			if s.Parent != t.Spans[0].ID {
				fmt.Fprintf(&b, "%s has another parent\n", s.Name)
			}
		}
		fmt.Fprintf(&b, "%s%s %v–%v", indent, s.Name, s.Start.Sub(start), s.End.Sub(start))
		for _, a := range s.Attributes {
			fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(a.Key), "ticketing."), a.Value.String())
		}
		for range s.Links {
			b.WriteString(" →")
		}
		if s.Error != "" {
			b.WriteString(" !")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// record returns the traces of what was told, the oldest first.
func record(t *testing.T, c Config, tell func(*Tracer)) []*Trace {
	t.Helper()
	tracer := New(c)
	tell(tracer)
	if err := tracer.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	list := tracer.Ring().Recent()
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// acquired tells of an acquire, whose answer is written 1 ms after it was decided.
func acquired(t *Tracer, e service.AcquireEvent) {
	if _, answered := t.Acquire(e); answered != nil {
		time.Sleep(time.Until(e.At.Add(e.Waited + time.Millisecond)))
		answered()
	}
}

// Every outcome has its spans: where the time went is to be seen, and only what is the
// server's fault is an error.
func TestATraceSaysWhereTheTimeWent(t *testing.T) {
	released := service.End{Token: 6, At: start.Add(2 * time.Second), Took: time.Millisecond, Held: 3 * time.Second}
	entry := service.EntryInfo{Index: 9, Term: 2, Commands: 3}
	for _, c := range []struct {
		name  string
		event service.AcquireEvent
		want  string
	}{
		{"granted at once", service.AcquireEvent{Result: service.AcquireGranted, Token: 7, Lease: 30 * time.Second},
			"acquire 0s–1ms key=k kept_for=ratio owner=5 token=7 node=n1 outcome=granted role=leader wait_s=0 lease_s=30 queue_position=0\n" +
				"  deliver 0s–1ms\n"},
		{"granted after a release", service.AcquireEvent{Result: service.AcquireGranted, Token: 7, Wait: 5 * time.Second, Waited: 2003 * time.Millisecond,
			Proposed: 2 * time.Second, Position: 4, Freed: released, Entry: entry},
			"release 1.999s–2s key=k kept_for=ratio token=6 node=n1 held_s=3 →\n" +
				"acquire 0s–2.004s key=k kept_for=ratio owner=5 token=7 node=n1 outcome=granted role=leader wait_s=5 lease_s=0 queue_position=4\n" +
				"  queue 0s–2s →\n" +
				"  commit 2s–2.003s raft.index=9 raft.term=2 raft.commands=3\n" +
				"  deliver 2.003s–2.004s\n"},
		{"timed out", service.AcquireEvent{Result: service.AcquireTimedOut, Wait: time.Second, Waited: time.Second, Position: 1},
			"acquire 0s–1.001s key=k kept_for=ratio owner=5 node=n1 outcome=timeout role=leader wait_s=1 lease_s=0 queue_position=1\n" +
				"  queue 0s–1s\n" +
				"  deliver 1s–1.001s\n"},
		{"refused", service.AcquireEvent{Result: service.AcquireBusy, Refused: service.RefusedWaiters},
			"acquire 0s–1ms key=k kept_for=ratio owner=5 node=n1 outcome=busy role=leader wait_s=0 lease_s=0 queue_position=0 refused=waiters\n" +
				"  deliver 0s–1ms\n"},
		{"unknown", service.AcquireEvent{Result: service.AcquireUnknown, Wait: time.Second, Waited: 500 * time.Millisecond, Proposed: 100 * time.Millisecond},
			"acquire 0s–501ms key=k kept_for=ratio owner=5 node=n1 outcome=unknown role=leader wait_s=1 lease_s=0 queue_position=0 !\n" +
				"  queue 0s–100ms\n" +
				"  commit 100ms–500ms\n" +
				"  deliver 500ms–501ms\n"},
		{"another node leads", service.AcquireEvent{Result: service.AcquireTurnedAway},
			"acquire 0s–1ms key=k kept_for=ratio owner=5 node=n1 outcome=moved role=follower wait_s=0 lease_s=0 queue_position=0\n" +
				"  deliver 0s–1ms\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(start))
				c.event.Key, c.event.Owner, c.event.At = "k", 5, start
				traces := record(t, Config{Sample: 1, Node: "n1"}, func(tr *Tracer) {
					if c.event.Freed.Token != 0 {
						tr.Release(service.ReleaseEvent{Key: "k", Current: true, End: c.event.Freed})
					}
					acquired(tr, c.event)
				})
				got := ""
				for _, trace := range traces {
					got += strings.ReplaceAll(show(trace), "kept_for=link", "kept_for=ratio")
				}
				if got != c.want {
					t.Errorf("got\n%swant\n%s", got, c.want)
				}
			})
		})
	}
}

// A key that is personal data is shown as its hash only, when that is asked for.
func TestKeysCanBeHashed(t *testing.T) {
	traces := record(t, Config{Sample: 1, HashKeys: true}, func(tr *Tracer) {
		acquired(tr, service.AcquireEvent{Key: "alice@example", Owner: 1, Result: service.AcquireGranted, Token: 3})
		tr.Release(service.ReleaseEvent{Key: "alice@example", Current: true, End: service.End{Token: 3}})
	})
	if len(traces) != 2 {
		t.Fatalf("%d traces", len(traces))
	}
	for _, trace := range traces {
		if text := show(trace) + trace.Key; strings.Contains(text, "alice") || !strings.Contains(text, "key_hash=") {
			t.Error(text)
		}
	}
}

// Whatever the ratio, an acquire that was slow or whose outcome is unknown is kept, and
// others are not.
func TestSlowAndUnknownAcquiresAreAlwaysKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		event service.AcquireEvent
		want  Why
		kept  bool
	}{
		{"quick", service.AcquireEvent{Result: service.AcquireGranted, Token: 1, Waited: 999 * time.Millisecond}, 0, false},
		{"slow", service.AcquireEvent{Result: service.AcquireGranted, Token: 1, Waited: time.Second}, BySlowness, true},
		{"slow and in vain", service.AcquireEvent{Result: service.AcquireTimedOut, Waited: time.Minute}, BySlowness, true},
		{"unknown", service.AcquireEvent{Result: service.AcquireUnknown}, ByDoubt, true},
		{"refused", service.AcquireEvent{Result: service.AcquireBusy}, 0, false},
	} {
		tracer := New(Config{})
		id, answered := tracer.Acquire(c.event)
		if (answered != nil) != c.kept || id.IsValid() != c.kept {
			t.Errorf("%s: kept %v", c.name, answered != nil)
		}
		if answered != nil {
			answered()
			if tracer.Kept(c.want) != 1 {
				t.Errorf("%s: it is not kept for being %v", c.name, c.want)
			}
		}
		if err := tracer.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// told gives a service's reports to a tracer.
type told struct{ *Tracer }

func (o told) AcquireDecided(e service.AcquireEvent) func() {
	_, answered := o.Acquire(e)
	return answered
}
func (o told) ReleaseDecided(e service.ReleaseEvent) { o.Release(e) }
func (told) GateChanged(service.Gate, bool)          {}

// holder is a session that releases some of what it is granted.
type holder struct {
	mu     sync.Mutex
	grants []service.Answer
	sent   []func()
}

func (h *holder) Deliver(a service.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.Outcome == service.Granted {
		h.grants = append(h.grants, a)
	}
	if a.Sent != nil {
		h.sent = append(h.sent, a.Sent)
	}
}

func (h *holder) Flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.sent {
		f()
	}
	h.sent = nil
}

// oldest takes the oldest of its grants.
func (h *holder) oldest() (a service.Answer, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.grants) == 0 {
		return a, false
	}
	a, h.grants = h.grants[0], h.grants[1:]
	return a, true
}

func (h *holder) Leader(string)                 {}
func (h *holder) End(service.EndReason, string) {}

// Whatever is kept, no link of it leads to something that is not: an end is kept when its
// acquire is, or the waiter that it let go.
func TestNoLinkDangles(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			links := 0
			traces := record(t, Config{Sample: 0.2}, func(tr *Tracer) {
				s := service.New(local.New(rng.Uint64N(1<<40)+1), service.Config{Limits: service.DefaultLimits(), Observer: told{tr}})
				defer s.Close()
				var h holder
				c := s.Open(&h, "")
				for i := range uint64(200) {
					s.Acquire(c, service.Acquire{Key: string('a' + rune(rng.IntN(4))), Owner: i + 1, Wait: time.Duration(rng.IntN(4)) * time.Second, Lease: time.Duration(1+rng.IntN(5)) * time.Second})
					h.Flush()
					time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
					synctest.Wait()
					if rng.IntN(2) == 0 {
						continue
					}
					if g, ok := h.oldest(); ok {
						s.Release(c, g.Key, g.Token)
						h.Flush()
					}
				}
				s.Leave(c)
			})
			have := make(map[string]bool)
			for _, trace := range traces {
				if name := trace.ID.String() + trace.Spans[0].ID.String(); have[name] {
					t.Errorf("kept twice:\n%s", show(trace))
				} else {
					have[name] = true
				}
			}
			for _, trace := range traces {
				for _, span := range trace.Spans {
					for _, link := range span.Links {
						links++
						if !have[link.TraceID().String()+link.SpanID().String()] {
							t.Errorf("a link dangles:\n%s", show(trace))
						}
					}
				}
			}
			if links == 0 || len(traces) == recentMax {
				t.Errorf("%d links in %d traces: the test looks at too little", links, len(traces))
			}
		})
	}
}

// What comes faster than traces can be built is dropped and counted; nobody waits.
func TestAFloodIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in no time, so nothing is passed on meanwhile
		tracer := New(Config{Sample: 1})
		for token := range uint64(pendingMax + 100) {
			if _, answered := tracer.Acquire(service.AcquireEvent{Result: service.AcquireGranted, Token: token + 1}); answered != nil {
				answered()
			}
		}
		if n := tracer.Dropped(); n != 100 {
			t.Errorf("%d were dropped, want 100", n)
		}
		if err := tracer.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(tracer.Ring().Recent()); n != recentMax {
			t.Errorf("%d traces are kept in memory, want the last %d", n, recentMax)
		}
	})
}

// In memory stay the last traces, and the slowest of each outcome.
func TestTheRing(t *testing.T) {
	traces := New(Config{Sample: 1})
	for i := range uint64(1000) {
		result := service.AcquireGranted
		if i%2 == 0 {
			result = service.AcquireTimedOut
		}
		took := time.Duration((i*7919)%1000) * time.Millisecond
		q := request{id: newID(rand.Uint64(), rand.Uint64(), rand.Uint64()), acquire: &service.AcquireEvent{Result: result, At: start, Waited: took}, answered: start.Add(took)}
		traces.ring.add([]request{q})
	}
	recent := traces.Ring().Recent()
	if len(recent) != recentMax || recent[0].Duration() != time.Duration((999*7919)%1000)*time.Millisecond {
		t.Errorf("%d traces, the newest of %v", len(recent), recent[0].Duration())
	}
	for _, outcome := range []string{"granted", "timeout"} {
		slowest := traces.Ring().Slowest(outcome)
		if len(slowest) != slowestMax {
			t.Fatalf("%d slowest", len(slowest))
		}
		for i, trace := range slowest {
			want := 999*time.Millisecond - time.Duration(2*i)*time.Millisecond
			if outcome == "timeout" {
				want -= time.Millisecond
			}
			if trace.Outcome != outcome || trace.Duration() != want {
				t.Errorf("the slowest %d of %s took %v, want %v", i, outcome, trace.Duration(), want)
			}
		}
	}
	if err := traces.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Without a tracer nothing happens, and an acquire that is not kept costs no memory.
func TestWhatIsNotKeptCostsNothing(t *testing.T) {
	var off *Tracer
	e := service.AcquireEvent{Key: "k", Result: service.AcquireGranted, Token: 1}
	on := New(Config{})
	for name, tracer := range map[string]*Tracer{"off": off, "on": on} {
		if n := testing.AllocsPerRun(100, func() {
			if _, answered := tracer.Acquire(e); answered != nil {
				t.Error("kept")
			}
			tracer.Release(service.ReleaseEvent{Key: "k", Current: true, End: service.End{Token: 1}})
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if off.Ring() != nil || off.Dropped() != 0 || off.Kept(ByRatio) != 0 || off.Close(context.Background()) != nil {
		t.Error("a tracer that is off does something")
	}
	if err := on.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
