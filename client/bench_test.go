package client_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/client"
)

// BenchmarkPair acquires and releases keys of their own from 64 goroutines of one
// broker, over loopback. What it allocates includes the test's server.
func BenchmarkPair(b *testing.B) {
	addr, stop := startServer()
	defer stop()
	broker, err := client.Connect(addr)
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close()
	ctx := context.Background()
	if err := broker.WaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	var worker atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprint("bench-", worker.Add(1))
		for pb.Next() {
			ticket, err := broker.Acquire(ctx, key, time.Minute, client.DefaultLease, 0)
			if err != nil {
				b.Error(err)
				return
			}
			if err := ticket.Release(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
