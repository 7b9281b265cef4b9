package trace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names who made the spans.
var scope = instrumentation.Scope{Name: "github.com/ticketing-io/ticketing/telemetry/trace"}

// ended is a span of a trace that is over, as the SDK's batches take it. The SDK's own
// spans are made for being filled while they run, which costs several times as much.
type ended struct {
	sdk.ReadOnlySpan // for its private method alone, which nobody calls
	trace            *Trace
	span             *Span
	resource         *resource.Resource
}

func (e ended) context(id trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: e.trace.ID, SpanID: id, TraceFlags: trace.FlagsSampled})
}

func (e ended) Name() string                   { return e.span.Name }
func (e ended) SpanContext() trace.SpanContext { return e.context(e.span.ID) }

func (e ended) Parent() trace.SpanContext {
	if !e.span.Parent.IsValid() {
		return trace.SpanContext{}
	}
	return e.context(e.span.Parent)
}

func (e ended) SpanKind() trace.SpanKind {
	if e.span.Parent.IsValid() {
		return trace.SpanKindInternal
	}
	return trace.SpanKindServer
}

func (e ended) Links() []sdk.Link {
	links := make([]sdk.Link, 0, len(e.span.Links))
	for _, l := range e.span.Links {
		links = append(links, sdk.Link{SpanContext: l})
	}
	return links
}

func (e ended) Status() sdk.Status {
	if e.span.Error == "" {
		return sdk.Status{}
	}
	return sdk.Status{Code: codes.Error, Description: e.span.Error}
}

func (e ended) ChildSpanCount() (n int) {
	for i := range e.trace.Spans {
		if e.trace.Spans[i].Parent == e.span.ID {
			n++
		}
	}
	return n
}

func (e ended) StartTime() time.Time                        { return e.span.Start }
func (e ended) EndTime() time.Time                          { return e.span.End }
func (e ended) Attributes() []attribute.KeyValue            { return e.span.Attributes }
func (e ended) Resource() *resource.Resource                { return e.resource }
func (e ended) InstrumentationScope() instrumentation.Scope { return scope }

// InstrumentationLibrary is InstrumentationScope by its old name.
func (e ended) InstrumentationLibrary() instrumentation.Scope { return scope }

func (e ended) Events() []sdk.Event    { return nil }
func (e ended) DroppedAttributes() int { return 0 }
func (e ended) DroppedLinks() int      { return 0 }
func (e ended) DroppedEvents() int     { return 0 }
