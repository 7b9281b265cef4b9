package telemetry

import (
	"log/slog"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/telemetry/metrics"
)

func setup(t *testing.T, env string, change func(*config.Config)) *Telemetry {
	t.Helper()
	c := config.Default()
	if change != nil {
		change(&c)
	}
	set, err := Setup(t.Context(), Config{Node: c, Env: func(name string) (string, bool) {
		set, value, _ := strings.Cut(env, "=")
		if set != name {
			return "", false
		}
		return value, true
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return set
}

// scrape returns the metrics as OpenMetrics, which has exemplars.
func scrape(t *Telemetry) string {
	t.Watch(metrics.Sources{})
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	rec := httptest.NewRecorder()
	t.Metrics().ServeHTTP(rec, req)
	return rec.Body.String()
}

// A slow acquire is in the metrics and in the traces, and the one leads to the other. A
// second node in the same process has nothing of it.
func TestASlowAcquireIsFoundByItsExemplar(t *testing.T) {
	one, other := setup(t, "", nil), setup(t, "", nil)
	answered := one.Service().AcquireDecided(service.AcquireEvent{
		Key: "k", Owner: 1, Result: service.AcquireGranted, Token: 5, At: time.Now().Add(-3 * time.Second), Waited: 3 * time.Second,
	})
	if answered == nil {
		t.Fatal("no trace of it is kept")
	}
	answered()
	for len(one.Traces().Recent()) == 0 {
		runtime.Gosched()
	}
	id := one.Traces().Recent()[0].ID.String()
	text := scrape(one)
	for _, want := range []string{`ticketing_acquires_total{outcome="granted"} 1`, `trace_id="` + id + `"`, `ticketing_traces_recorded_total{why="slow"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics don't have %s", want)
		}
	}
	if text := scrape(other); !strings.Contains(text, `ticketing_acquires_total{outcome="granted"} 0`) || len(other.Traces().Recent()) != 0 {
		t.Error("another node has it too")
	}
}

// When tracing is turned off there is none, and the metrics go on.
func TestTracingCanBeTurnedOff(t *testing.T) {
	off := setup(t, "OTEL_SDK_DISABLED=true", func(c *config.Config) { c.Trace.Sample = 1 })
	o := off.Service()
	if o.AcquireDecided(service.AcquireEvent{Result: service.AcquireUnknown, Waited: time.Minute}) != nil || off.Traces() != nil {
		t.Error("a trace is kept")
	}
	o.ReleaseDecided(service.ReleaseEvent{Current: true, End: service.End{Token: 1}})
	o.LeaseEnded(service.LeaseEvent{End: service.End{Token: 2}})
	o.GateChanged(service.GateKeys, true)
	text := scrape(off)
	for _, want := range []string{`ticketing_acquires_total{outcome="unknown"} 1`, `ticketing_releases_total{result="released"} 1`, `ticketing_expiries_total 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics don't have %s", want)
		}
	}
	if off.Replica() != nil {
		t.Error("a single server has metrics of raft")
	}
	if setup(t, "", func(c *config.Config) { c.Cluster.NodeID = "n1" }).Replica() == nil {
		t.Error("a cluster's node has none")
	}
}

// A variable that is not understood is logged by its name, and its default stands.
func TestAVariableThatIsNotUnderstoodIsLogged(t *testing.T) {
	var log strings.Builder
	set, err := Setup(t.Context(), Config{
		Node: config.Default(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Env: func(name string) (string, bool) {
			return map[string]string{"OTEL_PROPAGATORS": "b3"}[name], name == "OTEL_PROPAGATORS"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "OTEL_PROPAGATORS") || set.Traces() == nil {
		t.Errorf("the log is %q", &log)
	}
}
