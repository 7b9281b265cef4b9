package metrics

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

// A pair of acquire and release costs a few hundred nanoseconds, in the service's lock.
func BenchmarkAPair(b *testing.B) {
	for _, bench := range []struct {
		name  string
		trace trace.TraceID
	}{{"untraced", trace.TraceID{}}, {"traced", trace.TraceID{1}}} {
		b.Run(bench.name, func(b *testing.B) {
			m := New(Config{})
			granted := service.AcquireEvent{Key: "k", Result: service.AcquireGranted, Token: 1}
			released := service.ReleaseEvent{Key: "k", Current: true}
			for i := range b.N {
				granted.Waited = time.Duration(i%1000) * time.Microsecond
				released.Held = time.Duration(i%1000) * time.Millisecond
				m.Acquire(granted, bench.trace)
				m.Release(released)
			}
		})
	}
}
