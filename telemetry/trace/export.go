package trace

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// unsentMax bounds the batches of traces that wait for the SDK, whose own queue has 2048
// spans (OTEL_BSP_MAX_QUEUE_SIZE). More are dropped: a collector that hangs costs traces
// and nothing else.
const unsentMax = 8

// Service describes who exports.
type Service struct {
	Name, Version, Instance string
}

// Exporter sends traces to a collector, through the SDK.
type Exporter struct {
	batches  sdk.SpanProcessor
	out      *otlptrace.Exporter
	resource *resource.Resource
	unsent   chan []*Trace
	done     chan struct{}
	lost     atomic.Uint64 // spans that never left
	failures atomic.Uint64 // batches that a collector did not take
}

// NewExporter returns an exporter by a protocol of OTLP. The standard OTEL_EXPORTER_OTLP_*,
// OTEL_BSP_* and OTEL_RESOURCE_ATTRIBUTES variables rule it. It does not connect yet, and
// no collector is no error.
func NewExporter(ctx context.Context, protocol string, s Service) (*Exporter, error) {
	var client otlptrace.Client
	switch protocol {
	case ProtocolGRPC:
		client = otlptracegrpc.NewClient()
	case ProtocolHTTP:
		client = otlptracehttp.NewClient()
	default:
		return nil, fmt.Errorf("export traces: the protocol %q is not known", protocol)
	}
	out, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", s.Name), attribute.String("service.version", s.Version)}
	if s.Instance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", s.Instance))
	}
	// What the environment says of the resource comes last, and so stands.
	res, err := resource.New(ctx, resource.WithAttributes(attributes...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("export traces: read OTEL_RESOURCE_ATTRIBUTES: %w", err), out.Shutdown(ctx))
	}
	e := &Exporter{out: out, resource: res, unsent: make(chan []*Trace, unsentMax), done: make(chan struct{})}
	// Blocking, so that what does not fit is dropped, and counted, before it.
	e.batches = sdk.NewBatchSpanProcessor(counted{out, e}, sdk.WithBlocking())
	go e.send()
	return e, nil
}

// export hands traces over, or drops them.
func (e *Exporter) export(list []*Trace) {
	select {
	case e.unsent <- list:
	default:
		for _, t := range list {
			e.lost.Add(uint64(len(t.Spans)))
		}
	}
}

func (e *Exporter) send() {
	defer close(e.done)
	for list := range e.unsent {
		for _, t := range list {
			for i := range t.Spans {
				e.batches.OnEnd(ended{trace: t, span: &t.Spans[i], resource: e.resource})
			}
		}
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

// endPatience is how long the SDK may take to end when the context has ended: with one
// that has, it would not even begin to.
const endPatience = 50 * time.Millisecond

// close sends what is there, as far as the context lets it.
func (e *Exporter) close(ctx context.Context) error {
	close(e.unsent)
	select {
	case <-e.done:
	case <-ctx.Done():
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer cancel()
	}
	if err := e.batches.Shutdown(ctx); err != nil {
		// It still sends; this ends that.
		return errors.Join(fmt.Errorf("send the last traces: %w", err), e.out.Shutdown(ctx))
	}
	return nil
}

// counted counts what a collector did not take.
type counted struct {
	sdk.SpanExporter
	e *Exporter
}

// ExportSpans sends a batch.
func (c counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		c.e.failures.Add(1)
		c.e.lost.Add(uint64(len(spans)))
	}
	return err
}
