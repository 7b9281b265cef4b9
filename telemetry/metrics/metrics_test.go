package metrics

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/server"
	"github.com/ticketing-io/ticketing/core/service"
)

// ours tells our own metrics from those of the libraries.
func ours(name string) bool { return strings.HasPrefix(name, "ticketing_") }

// Every metric is there from the start, at 0 for every value of its labels: a rate over a
// series that comes with its first event would miss that one.
func TestEverythingBeginsAtZero(t *testing.T) {
	notZero := map[string]bool{
		"ticketing_build_info": true, "ticketing_config_info": true, "ticketing_admission_close_ratio": true,
		"ticketing_admission_open_ratio": true, "ticketing_certificate_not_after_seconds": true,
	}
	for name, f := range families(t, ofCluster()) {
		for _, s := range f.GetMetric() {
			if got := read(s); ours(name) && got != 0 && !notZero[name] {
				t.Errorf("%s%v begins at %v", name, s.GetLabel(), got)
			}
		}
	}
}

// A single server has no metrics of raft, and is otherwise the same.
func TestASingleServerHasNoRaft(t *testing.T) {
	single := New(Config{})
	single.Watch(Sources{Certificates: func() []Certificate { return []Certificate{{"admin", time.Now()}} }})
	var want []string
	for name := range families(t, ofCluster()) {
		if !strings.HasPrefix(name, "ticketing_raft_") {
			want = append(want, name)
		}
	}
	var got []string
	for name := range families(t, single) {
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if single.Raft != nil {
		t.Error("a single server observes raft")
	}
}

func TestNamesFollowPrometheusCustoms(t *testing.T) {
	m := ofCluster()
	var names []string
	for name := range families(t, m) {
		if ours(name) {
			names = append(names, name)
		}
	}
	problems, err := testutil.GatherAndLint(m, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// observer passes on what a service tells.
type observer struct{ *Metrics }

func (o observer) AcquireDecided(e service.AcquireEvent) func() {
	o.Acquire(e, trace.TraceID{})
	return nil
}
func (o observer) ReleaseDecided(e service.ReleaseEvent) { o.Release(e) }

// sink is a client that reads no answer.
type sink struct{}

func (sink) Deliver(service.Answer)        {}
func (sink) Leader(string)                 {}
func (sink) End(service.EndReason, string) {}
func (sink) Flush()                        {}

// However many keys, owners and clients there are, the number of series stays the same.
func TestKeysMakeNoSeries(t *testing.T) {
	m := New(Config{})
	s := service.New(local.New(1), service.Config{Limits: service.DefaultLimits(), Observer: observer{m}})
	defer s.Close()
	m.Watch(Sources{Service: s.Stats})
	// What a histogram has seen changes its buckets, not its series.
	before := series(t, m)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const keys = 10_000
	for i := range keys {
		c := s.Open(sink{}, "somebody")
		key := make([]byte, 1+random.IntN(100))
		for j := range key {
			key[j] = byte(random.IntN(256))
		}
		s.Acquire(c, service.Acquire{Key: string(key), Owner: random.Uint64(), Lease: time.Minute, Wait: time.Duration(random.IntN(2)) * time.Minute})
		s.Release(c, string(key), uint64(i))
		m.ConnectionOpened()
		m.ConnectionClosed(server.ClosedByClient, time.Second)
		s.Leave(c)
	}
	if after := series(t, m); after != before {
		t.Errorf("%d series before, %d after %d keys", before, after, keys)
	}
	if n := value(t, m, "ticketing_acquires_total", "granted"); n == 0 || n != value(t, m, "ticketing_tokens_granted_total") {
		t.Errorf("%v acquires were granted", n)
	}
}

// Two nodes in one process count each for itself.
func TestTwoNodesShareNothing(t *testing.T) {
	a, b := ofCluster(), ofCluster()
	a.Acquire(service.AcquireEvent{Result: service.AcquireGranted, Token: 1}, trace.TraceID{})
	a.Committed(1, time.Second)
	a.ConnectionOpened()
	for _, name := range []string{"ticketing_tokens_granted_total", "ticketing_raft_commit_seconds", "ticketing_connections_accepted_total"} {
		if value(t, a, name) != 1 || value(t, b, name) != 0 {
			t.Errorf("%s: %v on the one, %v on the other", name, value(t, a, name), value(t, b, name))
		}
	}
}
