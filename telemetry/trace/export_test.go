package trace

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ticketing-io/ticketing/core/service"
)

// receiver is a collector that keeps what it gets.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]string
	hangs    chan struct{} // closed: it answers; nil: it never hangs
}

// Export takes spans over gRPC.
func (r *receiver) Export(ctx context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if r.hangs != nil {
		select {
		case <-r.hangs:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resource = make(map[string]string)
	for _, rs := range req.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			r.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP takes spans over HTTP.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	var m collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &m)
	}
	if err == nil {
		_, err = r.Export(req.Context(), &m)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

// start has the receiver serve a protocol, and points the environment to it.
func (r *receiver) start(t *testing.T, protocol string) {
	t.Helper()
	switch protocol {
	case ProtocolHTTP:
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	case ProtocolGRPC:
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		collector.RegisterTraceServiceServer(server, r)
		var wg sync.WaitGroup
		wg.Go(func() { _ = server.Serve(l) })
		t.Cleanup(func() { server.Stop(); wg.Wait() })
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	}
}

// waiting returns how many requests are not passed on yet.
func (t *Tracer) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

func exporting(t *testing.T, protocol string) *Tracer {
	t.Helper()
	e, err := NewExporter(t.Context(), protocol, DefaultBatches(), Service{Name: "ticketing", Version: "1.2.3", Instance: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Sample: 1, Node: "n1", Exporter: e})
}

// A collector gets each trace with its ids, parents, links, times and attributes; what is
// there when the server ends is sent before.
func TestACollectorGetsTheTraces(t *testing.T) {
	for _, protocol := range []string{ProtocolHTTP, ProtocolGRPC} {
		t.Run(protocol, func(t *testing.T) {
			var r receiver
			r.start(t, protocol)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
			tracer := exporting(t, protocol)
			freed := service.End{Token: 6, At: start.Add(time.Second), Held: time.Second}
			tracer.Release(service.ReleaseEvent{Key: "k", Current: true, End: freed})
			_, answered := tracer.Acquire(service.AcquireEvent{
				Key: "k", Owner: 1<<64 - 1, Result: service.AcquireGranted, Token: 7, At: start, Waited: 2 * time.Second, Proposed: time.Second,
				Freed: freed, Entry: service.EntryInfo{Index: 1, Term: 1, Commands: 2},
			})
			answered()
			_, answered = tracer.Acquire(service.AcquireEvent{Key: "k", Result: service.AcquireUnknown, At: start})
			answered()
			if err := tracer.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r.resource["service.name"] != "ticketing" || r.resource["service.version"] != "1.2.3" || r.resource["service.instance.id"] != "n1" || r.resource["deployment.environment"] != "test" {
				t.Errorf("the resource is %v", r.resource)
			}
			sent := make(map[string]*otlp.Span)
			for _, s := range r.spans {
				sent[string(s.TraceId)+string(s.SpanId)] = s
			}
			count := 0
			for _, trace := range tracer.Ring().Recent() {
				for _, want := range trace.Spans {
					count++
					got := sent[string(trace.ID[:])+string(want.ID[:])]
					if got == nil {
						t.Errorf("%s was not sent", want.Name)
						continue
					}
					kind := otlp.Span_SPAN_KIND_SERVER
					if want.Parent.IsValid() {
						kind = otlp.Span_SPAN_KIND_INTERNAL
						if string(got.ParentSpanId) != string(want.Parent[:]) {
							t.Errorf("%s has another parent", want.Name)
						}
					} else if len(got.ParentSpanId) > 0 {
						t.Errorf("%s has a parent", want.Name)
					}
					if got.Kind != kind || got.Name != want.Name || len(got.Attributes) != len(want.Attributes) ||
						got.StartTimeUnixNano != uint64(want.Start.UnixNano()) || got.EndTimeUnixNano != uint64(want.End.UnixNano()) {
						t.Errorf("%s was sent as %v", want.Name, got)
					}
					if failed := got.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR; failed != (want.Error != "") {
						t.Errorf("%s: its status is %v", want.Name, got.Status)
					}
					for i, link := range want.Links {
						id, span := link.TraceID(), link.SpanID()
						if len(got.Links) <= i || string(got.Links[i].TraceId) != string(id[:]) || string(got.Links[i].SpanId) != string(span[:]) {
							t.Errorf("%s: its links are %v", want.Name, got.Links)
						} else if sent[string(id[:])+string(span[:])] == nil && want.Name == SpanQueue {
							t.Errorf("%s: what it links to was not sent", want.Name)
						}
					}
					for _, a := range got.Attributes {
						if a.Key == "ticketing.owner" && a.Value.GetStringValue() != "18446744073709551615" {
							t.Errorf("the owner was sent as %v", a.Value)
						}
					}
				}
			}
			if count != len(r.spans) || count != 7 {
				t.Errorf("%d spans were sent, %d kept, want 7", len(r.spans), count)
			}
			if n := tracer.config.Exporter.Lost(); n != 0 {
				t.Errorf("%d spans were lost", n)
			}
		})
	}
}

// A collector that hangs costs traces, which are counted, and nothing else: whoever
// acquires does not wait, what is kept in memory goes on, and the end does not wait longer
// than it may.
func TestACollectorThatHangs(t *testing.T) {
	r := receiver{hangs: make(chan struct{})}
	r.start(t, ProtocolGRPC)
	tracer := exporting(t, ProtocolGRPC)
	const acquires = 16384 // twice as many spans as the queue holds
	for token := range uint64(acquires) {
		_, answered := tracer.Acquire(service.AcquireEvent{Key: "k", Result: service.AcquireGranted, Token: token + 1})
		answered()
		for tracer.waiting() > pendingMax/2 { // not faster than traces are built
			runtime.Gosched()
		}
	}
	for tracer.config.Exporter.Lost() == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("nothing was dropped")
		case <-time.After(time.Millisecond):
		}
	}
	if n := len(tracer.Ring().Recent()); n != recentMax {
		t.Errorf("%d traces are in memory", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tracer.Close(ctx); err == nil {
		t.Error("the end waited, or says that all was sent")
	}
	close(r.hangs)
	<-tracer.config.Exporter.done
}

// A collector that is not there costs traces, which are counted.
func TestACollectorThatIsNotThere(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	tracer := exporting(t, ProtocolHTTP)
	_, answered := tracer.Acquire(service.AcquireEvent{Key: "k", Result: service.AcquireGranted, Token: 1})
	answered()
	_ = tracer.Close(t.Context())
	if e := tracer.config.Exporter; e.Lost() == 0 || e.Failures() != 1 {
		t.Errorf("%d spans lost, %d failures", e.Lost(), e.Failures())
	}
	if len(tracer.Ring().Recent()) != 1 {
		t.Error("it is not in memory either")
	}
}

func TestAnUnknownProtocol(t *testing.T) {
	if _, err := NewExporter(t.Context(), "carrier pigeon", DefaultBatches(), Service{}); err == nil {
		t.Error("it is taken")
	}
}
