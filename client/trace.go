package client

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// tracerName is the instrumentation scope of the spans.
const tracerName = "github.com/ticketing-io/ticketing/client"

// Names of spans.
const (
	spanAcquire = "client.acquire"
	spanRelease = "client.release"
	spanPlace   = "place" // Config.MaxPending requests were pending
	spanDial    = "dial"  // no connection could take it
	spanQueue   = "queue" // for the broker's writer
	spanWrite   = "write"
	spanReply   = "reply"
)

// Attributes of spans. The server's spans have the same ones.
const (
	keyAttr      = attribute.Key("ticketing.key")
	ownerAttr    = attribute.Key("ticketing.owner") // decimal: it has 64 bits
	tokenAttr    = attribute.Key("ticketing.token") // decimal
	waitAttr     = attribute.Key("ticketing.wait_s")
	leaseAttr    = attribute.Key("ticketing.lease_s")
	outcomeAttr  = attribute.Key("ticketing.outcome")
	attemptsAttr = attribute.Key("ticketing.attempts") // where there was more than one
)

// outcomes are the kinds of errors as ticketing.outcome has them: the first that fits.
var outcomes = []struct {
	kind   error
	name   string
	failed bool // the span is an error: nobody knows what happened, or nobody could be asked
}{
	{ErrNotCurrent, "not_current", false},
	{ErrIndeterminate, "indeterminate", true},
	{ErrAuthRefused, "auth_refused", true},
	{ErrNotConnected, "not_connected", true},
	{ErrClientCapacity, "client_capacity", false},
	{ErrTimeout, "timeout", false},
	{ErrBusy, "busy", false},
	{ErrCancelled, "cancelled", false},
	{ErrInsufficientLease, "insufficient_lease", false},
	{ErrUnsupportedDuration, "unsupported_duration", false},
	{ErrInvalidKey, "invalid_key", false},
	{ErrClosed, "closed", false},
}

// tracing makes the spans of a broker's calls; its zero value makes none.
type tracing struct {
	tracer trace.Tracer
	// unset is OpenTelemetry's stand-in for a provider, if there was none at the
	// start. Spans of its tracer are nothing until the application sets one, and cost.
	unset trace.TracerProvider
}

// newTracing takes a provider; nil is the global one, now or as soon as it is set.
func newTracing(p trace.TracerProvider) (t tracing) {
	if p == nil {
		p = otel.GetTracerProvider()
		if isStandIn(p) {
			t.unset = p
		}
	}
	if _, off := p.(noop.TracerProvider); off {
		return tracing{}
	}
	t.tracer = p.Tracer(tracerName)
	return t
}

// isStandIn says whether p is what the API has as long as no provider is set. It does
// not say so itself; should its package be named otherwise one day, a call costs two
// allocations more and is traced all the same.
func isStandIn(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

// span is the span of one call that is recorded.
type span struct {
	trace.Span
	ctx    context.Context // of its children
	tracer trace.Tracer
	wall   time.Time     // of the same moment as
	began  time.Duration // this on the broker's clock
	trail  *trail
}

// start begins the span of a call that began at began, a moment ago. It is nil unless
// somebody records it; nothing is allocated when no provider is set.
func (t *tracing) start(ctx context.Context, name string, began time.Duration) *span {
	if t.tracer == nil || t.unset != nil && t.unset == otel.GetTracerProvider() {
		return nil
	}
	wall := time.Now()
	ctx, root := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(wall))
	if !root.IsRecording() {
		root.End()
		return nil
	}
	return &span{Span: root, ctx: ctx, tracer: t.tracer, wall: wall, began: began, trail: &trail{}}
}

// trailOf returns where a call notes its moments, nil for a call without a span.
func trailOf(s *span) *trail {
	if s == nil {
		return nil
	}
	return s.trail
}

// endAcquire ends the span of an acquire, if there is one.
func (b *Broker) endAcquire(s *span, key string, wait, lease time.Duration, ticket *Ticket, err error) {
	if s == nil {
		return
	}
	attrs := []attribute.KeyValue{waitAttr.Float64(float64(seconds(wait))), leaseAttr.Float64(float64(seconds(lease)))}
	if ticket != nil {
		attrs = append(attrs, numberAttr(tokenAttr, ticket.token))
	}
	b.endSpan(s, key, "granted", err, attrs)
}

// endRelease ends the span of a release, if there is one. The ticket may be nil.
func (b *Broker) endRelease(s *span, key string, token uint64, ticket *Ticket, err error) {
	if s == nil {
		return
	}
	if ticket != nil {
		s.trail.owner = ticket.owner
	}
	b.endSpan(s, key, "released", err, []attribute.KeyValue{numberAttr(tokenAttr, token)})
}

// endSpan ends a span and makes its children, out of what its call noted.
func (b *Broker) endSpan(s *span, key, success string, err error, attrs []attribute.KeyValue) {
	end := b.clock.mono()
	b.mu.Lock()
	noted := *s.trail // the writer may still write to it
	b.unlock()
	for _, stage := range noted.stages(end) {
		_, child := s.tracer.Start(s.ctx, stage.name, trace.WithTimestamp(s.at(stage.from)))
		child.End(trace.WithTimestamp(s.at(stage.to)))
	}
	if checkKey(key) == nil { // else it may be of any length, and no text
		attrs = append(attrs, keyAttr.String(key))
	}
	if noted.attempts > 1 {
		attrs = append(attrs, attemptsAttr.Int(noted.attempts))
	}
	if noted.owner != 0 {
		attrs = append(attrs, numberAttr(ownerAttr, noted.owner))
	}
	outcome, failed := outcomeOf(err, success)
	s.SetAttributes(append(attrs, outcomeAttr.String(outcome))...)
	if failed {
		s.SetStatus(codes.Error, err.Error())
	}
	s.End(trace.WithTimestamp(s.at(end)))
}

// at is the time of a moment on the broker's clock.
func (s *span) at(m time.Duration) time.Time { return s.wall.Add(m - s.began) }

func outcomeOf(err error, success string) (name string, failed bool) {
	if err == nil {
		return success, false
	}
	for _, o := range outcomes {
		if errors.Is(err, o.kind) {
			return o.name, o.failed
		}
	}
	return "other", true
}

func numberAttr(k attribute.Key, n uint64) attribute.KeyValue {
	return k.String(strconv.FormatUint(n, 10))
}
