package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/config"
)

// Attributes that this package adds to lines.
const (
	// LeftOut is how many lines like this one were left out before it.
	LeftOut = "left_out"
	// TraceID is the id of the trace that a line belongs to, in hex.
	TraceID = "trace_id"
)

// New returns a logger that writes a line for each event to w, as config.LogText or
// config.LogJSON says, from level on. Each line is one call of Write.
func New(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	return slog.New(newFlood(traced{newFormat(w, format, level)}))
}

// newFormat returns the handler that writes lines.
func newFormat(w io.Writer, format string, level slog.Leveler) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: asText}
	if format == config.LogJSON {
		return slog.NewJSONHandler(printable{w}, options)
	}
	return slog.NewTextHandler(printable{w}, options)
}

// asText has an address, say, stand in JSON as what it is called and not as its fields.
func asText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	switch v := a.Value.Any().(type) {
	case error, json.Marshaler, *slog.Source: // slog knows what to do with these
	case fmt.Stringer:
		a.Value = slog.StringValue(text(v))
	}
	return a
}

// text is what v is called, also where v is a nil that can't say so.
func text(v fmt.Stringer) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("!PANIC: %v", p)
		}
	}()
	return v.String()
}

// traced adds the trace of the context to a line.
type traced struct{ slog.Handler }

// Handle adds the trace's id.
func (t traced) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		r = r.Clone()
		r.AddAttrs(slog.String(TraceID, s.TraceID().String()))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs adds attributes to every line.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

// WithGroup puts what follows into a group.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }
