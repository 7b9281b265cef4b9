package trace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/resource"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// scope names who made the spans.
const scope = "github.com/ticketing-io/ticketing/telemetry/trace"

// Service describes who exports.
type Service struct {
	Name, Version, Instance string
}

// Exporter sends traces to a collector, in batches.
type Exporter struct {
	client   otlptrace.Client
	resource *resource.Resource
	settings BatchSettings

	mu      sync.Mutex
	filling batch   // takes the next spans
	full    []batch // to be sent, the oldest first
	queued  int     // spans in all of these
	closed  bool

	wake     chan struct{}      // there is something to be sent, or the exporter is closed; of capacity one
	done     chan struct{}      // closed when nothing is sent any more
	giveUp   context.CancelFunc // ends what is being sent
	lost     atomic.Uint64      // spans that never left
	failures atomic.Uint64      // batches that a collector did not take
}

// batch is spans that are sent together.
type batch struct {
	encoded []byte // as the spans of a ScopeSpans
	spans   int
}

// NewExporter returns an exporter by a protocol of OTLP. The standard OTEL_EXPORTER_OTLP_*
// and OTEL_RESOURCE_ATTRIBUTES variables rule it. It does not connect yet, and no collector
// is no error.
func NewExporter(ctx context.Context, protocol string, batches BatchSettings, s Service) (*Exporter, error) {
	var client otlptrace.Client
	switch protocol {
	case ProtocolGRPC:
		client = otlptracegrpc.NewClient()
	case ProtocolHTTP:
		client = otlptracehttp.NewClient()
	default:
		return nil, fmt.Errorf("export traces: the protocol %q is not known", protocol)
	}
	r, err := describe(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("export traces: read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	sending, giveUp := context.WithCancel(context.Background())
	e := &Exporter{
		client: client, resource: r, settings: batches, giveUp: giveUp,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go e.send(sending)
	return e, nil
}

// describe returns who exports. What the environment says of it comes last, and so stands.
func describe(ctx context.Context, s Service) (*resource.Resource, error) {
	list := []attribute.KeyValue{attribute.String("service.name", s.Name), attribute.String("service.version", s.Version)}
	if s.Instance != "" {
		list = append(list, attribute.String("service.instance.id", s.Instance))
	}
	found, err := sdk.New(ctx, sdk.WithAttributes(list...), sdk.WithTelemetrySDK(), sdk.WithFromEnv())
	if err != nil {
		return nil, err
	}
	r := &resource.Resource{}
	for _, a := range found.Attributes() {
		r.Attributes = append(r.Attributes, keyValue(a))
	}
	return r, nil
}

// export takes traces to be sent, or drops what there is no room for.
func (e *Exporter) export(list []*Trace) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range list {
		if e.closed || e.queued+len(t.Spans) > e.settings.Queue {
			e.lost.Add(uint64(len(t.Spans)))
			continue
		}
		e.filling.encoded = appendTrace(e.filling.encoded, t)
		e.filling.spans += len(t.Spans)
		e.queued += len(t.Spans)
		if e.filling.spans >= e.settings.Batch {
			e.cut()
			e.awaken()
		}
	}
}

// cut puts what has gathered to what is to be sent. The lock is held.
func (e *Exporter) cut() {
	if e.filling.spans > 0 {
		e.full = append(e.full, e.filling)
		e.filling = batch{encoded: make([]byte, 0, cap(e.filling.encoded))}
	}
}

// awaken has send look.
func (e *Exporter) awaken() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// send sends batches as they are full or due, until the exporter is closed and nothing is
// left.
func (e *Exporter) send(ctx context.Context) {
	defer close(e.done)
	for e.await() {
		for b, ok := e.next(); ok; b, ok = e.next() {
			e.upload(ctx, b)
		}
	}
}

// await waits until something is to be sent, and returns false when nothing will be.
func (e *Exporter) await() bool {
	due := time.NewTimer(e.settings.Delay)
	defer due.Stop()
	for {
		e.mu.Lock()
		some, closed := len(e.full) > 0, e.closed
		e.mu.Unlock()
		if some || closed {
			return some
		}
		select {
		case <-e.wake:
		case <-due.C:
			e.mu.Lock()
			e.cut()
			e.mu.Unlock()
			due.Reset(e.settings.Delay)
		}
	}
}

func (e *Exporter) next() (b batch, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.full) == 0 {
		return batch{}, false
	}
	b = e.full[0]
	e.full = append(e.full[:0], e.full[1:]...)
	e.queued -= b.spans
	return b, true
}

// upload sends a batch, and counts it when the collector does not take it.
func (e *Exporter) upload(ctx context.Context, b batch) {
	ctx, cancel := context.WithTimeout(ctx, e.settings.Timeout)
	defer cancel()
	spans := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: scope}}
	spans.ProtoReflect().SetUnknown(b.encoded) // fields that this program did not decode are sent as they are
	err := e.client.UploadTraces(ctx, []*otlp.ResourceSpans{{Resource: e.resource, ScopeSpans: []*otlp.ScopeSpans{spans}}})
	if err != nil {
		e.failures.Add(1)
		e.lost.Add(uint64(b.spans))
		otel.Handle(err)
	}
}

// Lost returns how many spans never reached a collector.
func (e *Exporter) Lost() uint64 {
	if e == nil {
		return 0
	}
	return e.lost.Load()
}

// Failures returns how many batches of spans a collector did not take.
func (e *Exporter) Failures() uint64 {
	if e == nil {
		return 0
	}
	return e.failures.Load()
}

// endPatience is how long the connections may take to end when the context has ended.
const endPatience = 50 * time.Millisecond

// close sends what is there, as far as the context lets it.
func (e *Exporter) close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.cut()
	e.awaken()
	e.mu.Unlock()
	defer e.giveUp()
	var unsent error
	select {
	case <-e.done:
	case <-ctx.Done():
		unsent = fmt.Errorf("send the last traces: %w", ctx.Err())
		e.giveUp()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer cancel()
	}
	return errors.Join(unsent, e.client.Stop(ctx))
}
