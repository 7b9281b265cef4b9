package metrics

import (
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
)

// A pair of acquire and release costs a few hundred nanoseconds, in the service's lock.
func BenchmarkAPair(b *testing.B) {
	for _, bench := range []struct {
		name, trace string
	}{{"untraced", ""}, {"traced", "0af7651916cd43dd8448eb211c80319c"}} {
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
