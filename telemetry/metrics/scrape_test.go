package metrics

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

const (
	openMetrics = "application/openmetrics-text;version=1.0.0"
	protobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// A scrape in protobuf finds native histograms beside the classic buckets.
func TestHistogramsAreNativeAndClassic(t *testing.T) {
	m := ofCluster()
	m.Acquire(service.AcquireEvent{Result: service.AcquireGranted, Token: 1, Waited: 3 * time.Millisecond, Position: 7}, trace.TraceID{})
	m.Release(service.ReleaseEvent{Current: true, End: service.End{Held: time.Second}})
	answer := scrape(t, m, protobuf)
	decoder := expfmt.NewDecoder(answer.Body, expfmt.ResponseFormat(http.Header(answer.Header())))
	histograms := 0
	for {
		var f dto.MetricFamily
		err := decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.GetType() != dto.MetricType_HISTOGRAM || !ours(f.GetName()) {
			continue
		}
		histograms++
		for _, s := range f.GetMetric() {
			h := s.GetHistogram()
			// By these two Prometheus knows a native one, though it is empty.
			if h.Schema == nil || h.GetZeroThreshold() <= 0 {
				t.Errorf("%s%v is not native: %v", f.GetName(), s.GetLabel(), h)
			}
			if len(h.GetBucket()) < 10 {
				t.Errorf("%s%v has %d classic buckets", f.GetName(), s.GetLabel(), len(h.GetBucket()))
			}
			if f.GetName() == "ticketing_hold_seconds" && s.GetLabel()[0].GetValue() == "released" && len(h.GetPositiveDelta()) != 1 {
				t.Errorf("a hold of a second is in the native buckets %v", h.GetPositiveDelta())
			}
		}
	}
	if histograms != 9 {
		t.Errorf("found %d histograms, want 9", histograms)
	}
}

// Of many acquires at once with a trace, the slowest is the one that people look for.
func TestTheSlowestLeavesTheExemplar(t *testing.T) {
	m := New(Config{})
	for i := range byte(notedMax) {
		took := time.Duration(i*7%notedMax) * time.Millisecond
		m.Acquire(service.AcquireEvent{Result: service.AcquireGranted, Token: 1, Waited: took}, trace.TraceID{1, byte(took / time.Millisecond)})
	}
	text := scrape(t, m, openMetrics).Body.String()
	if slowest := (trace.TraceID{1, notedMax - 1}).String(); strings.Count(text, "trace_id") != 1 || !strings.Contains(text, slowest) {
		t.Errorf("%s is not the only exemplar in\n%s", slowest, text)
	}
}

// Only an acquire whose trace is recorded leaves an exemplar.
func TestOnlyATracedAcquireLeavesAnExemplar(t *testing.T) {
	m := New(Config{})
	waited := service.AcquireEvent{Result: service.AcquireGranted, Token: 1, Waited: 3 * time.Millisecond}
	m.Acquire(waited, trace.TraceID{})
	if text := scrape(t, m, openMetrics).Body.String(); strings.Contains(text, "trace_id") {
		t.Error("an acquire without a trace left an exemplar")
	}
	const id = "0af7651916cd43dd8448eb211c80319c"
	traceID, err := trace.TraceIDFromHex(id)
	if err != nil {
		t.Fatal(err)
	}
	m.Acquire(waited, traceID)
	answer := scrape(t, m, openMetrics)
	var lines []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.Contains(line, id) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], `ticketing_acquire_wait_seconds_bucket{outcome="granted",le="0.005"} 2 # {trace_id="`+id+`"} 0.003`) {
		t.Errorf("the exemplar's lines: %q", lines)
	}
	if form := answer.Header().Get("Content-Type"); !strings.HasPrefix(form, "application/openmetrics-text; version=1.0.0") || !strings.HasSuffix(answer.Body.String(), "# EOF\n") {
		t.Errorf("the answer is %q, and ends in %q", form, answer.Body.String()[answer.Body.Len()-20:])
	}
}
