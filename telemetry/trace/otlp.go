package trace

import (
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// Spans are written in OTLP's form at once: as messages of the generated code each of
// them would be some forty objects, which cost several times as much as the lock itself.

// Fields of OTLP's messages (opentelemetry/proto/trace/v1/trace.proto, common.proto).
const (
	scopeSpansSpan = 2

	spanTraceID    = 1
	spanSpanID     = 2
	spanParent     = 4
	spanName       = 5
	spanKind       = 6
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanLinks      = 13
	spanStatus     = 15
	spanFlags      = 16

	linkTraceID = 1
	linkSpanID  = 2
	linkFlags   = 6

	statusMessage = 2
	statusCode    = 3

	keyValueKey   = 1
	keyValueValue = 2

	valueString = 1
	valueBool   = 2
	valueInt    = 3
	valueDouble = 4
)

// sampled are the flags of spans and links: all that is sent was kept, and whether it is
// of another process is known.
const (
	sampled       = uint32(trace.FlagsSampled) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	sampledRemote = sampled | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
)

// appendTrace appends a trace's spans as the spans of a ScopeSpans.
func appendTrace(b []byte, t *Trace) []byte {
	for i := range t.Spans {
		b = appendNested(b, scopeSpansSpan, func(b []byte) []byte { return appendSpan(b, t, &t.Spans[i]) })
	}
	return b
}

func appendSpan(b []byte, t *Trace, s *Span) []byte {
	b = appendBytes(b, spanTraceID, t.ID[:])
	b = appendBytes(b, spanSpanID, s.ID[:])
	kind := otlp.Span_SPAN_KIND_SERVER
	if s.Parent.IsValid() {
		b = appendBytes(b, spanParent, s.Parent[:])
		kind = otlp.Span_SPAN_KIND_INTERNAL
	}
	b = appendString(b, spanName, s.Name)
	b = appendVarint(b, spanKind, uint64(kind))
	b = appendFixed64(b, spanStart, uint64(max(0, s.Start.UnixNano())))
	b = appendFixed64(b, spanEnd, uint64(max(0, s.End.UnixNano())))
	for i := range s.Attributes {
		b = appendNested(b, spanAttributes, func(b []byte) []byte { return appendAttribute(b, &s.Attributes[i]) })
	}
	for _, l := range s.Links {
		b = appendNested(b, spanLinks, func(b []byte) []byte { return appendLink(b, l) })
	}
	if s.Error != "" {
		b = appendNested(b, spanStatus, func(b []byte) []byte {
			b = appendString(b, statusMessage, s.Error)
			return appendVarint(b, statusCode, uint64(otlp.Status_STATUS_CODE_ERROR))
		})
	}
	return appendFixed32(b, spanFlags, sampled)
}

func appendLink(b []byte, l trace.SpanContext) []byte {
	id, span := l.TraceID(), l.SpanID()
	b = appendBytes(b, linkTraceID, id[:])
	b = appendBytes(b, linkSpanID, span[:])
	return appendFixed32(b, linkFlags, sampledRemote)
}

func appendAttribute(b []byte, a *attribute.KeyValue) []byte {
	b = appendString(b, keyValueKey, string(a.Key))
	return appendNested(b, keyValueValue, func(b []byte) []byte {
		switch a.Value.Type() {
		case attribute.INT64:
			return appendVarint(b, valueInt, uint64(a.Value.AsInt64()))
		case attribute.FLOAT64:
			return appendFixed64(b, valueDouble, math.Float64bits(a.Value.AsFloat64()))
		case attribute.BOOL:
			return appendVarint(b, valueBool, protowire.EncodeBool(a.Value.AsBool()))
		}
		return appendString(b, valueString, a.Value.String())
	})
}

// keyValue returns an attribute as OTLP's message.
func keyValue(a attribute.KeyValue) *common.KeyValue {
	return &common.KeyValue{
		Key: string(a.Key), Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: a.Value.String()}},
	}
}

// lengthBytes is the room that is left for the length of a message before it is known. A
// length that is shorter is written with bytes more than it needs, as the encoding allows.
const lengthBytes = 3

// appendNested appends a message of less than 2 MiB.
func appendNested(b []byte, field protowire.Number, message func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	begin := len(b)
	b = message(append(b, make([]byte, lengthBytes)...))
	length := len(b) - begin - lengthBytes
	b[begin], b[begin+1], b[begin+2] = byte(length)|0x80, byte(length>>7)|0x80, byte(length>>14)
	return b
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed64(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func appendFixed32(b []byte, field protowire.Number, v uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), v)
}
