package node_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// The benchmarks of this file measure one whole run each, of a server in a process
// of its own: `go test -run '^$' -bench . -benchtime 1x ./core/node`.

// residentBytes is what the process keeps in memory, everything counted: heap,
// stacks, what the collector has not given back, the runtime itself.
func residentBytes(tb testing.TB, p *os.Process) float64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		tb.Skip("needs /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return float64(kb) * 1024
}

// inFlight bounds what a pipelining client of these benchmarks has unanswered, so
// that the server is busy and no queue of answers builds up.
const inFlight = 128

// pipeline sends n acquires and reads their grants, inFlight at a time.
func pipeline(tb testing.TB, c *rawClient, n int, key func(i int) string, wait, lease uint8) {
	for sent := 0; sent < n; {
		batch := min(inFlight, n-sent)
		for i := range batch {
			c.acquire(key(sent+i), wait, lease, uint64(sent+i+1))
		}
		if err := c.flush(); err != nil {
			tb.Error(err)
			return
		}
		for range batch {
			if r, err := c.read(); err != nil || r.Op != wire.OpAcquire {
				tb.Errorf("answered %+v, %v", r, err)
				return
			}
		}
		sent += batch
	}
}

// BenchmarkHeldKeys: what a held key takes, of 900,000.
func BenchmarkHeldKeys(b *testing.B) {
	const keys = 900_000
	for b.Loop() {
		addr, p := startServer(b)
		c := dialRaw(b, addr, "")
		before := residentBytes(b, p)
		start := time.Now()
		pipeline(b, c, keys, func(i int) string { return fmt.Sprintf("order-%07d", i) }, 0, wire.MaxLease)
		b.ReportMetric(keys/time.Since(start).Seconds(), "acquires/s")
		b.ReportMetric((residentBytes(b, p)-before)/keys, "B/key")
	}
}

// BenchmarkIdleConnections: what an authenticated connection takes that says
// nothing, of 8,000.
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 8000
	for b.Loop() {
		addr, p := startServer(b, "MAX_CONNECTIONS="+strconv.Itoa(wire.MaxConnections))
		dialRaw(b, addr, "")
		before := residentBytes(b, p)
		for range connections {
			dialRaw(b, addr, "")
		}
		b.ReportMetric((residentBytes(b, p)-before)/connections, "B/connection")
	}
}

// BenchmarkWaiters: what a waiter takes, of 58,000 over 64 connections.
func BenchmarkWaiters(b *testing.B) {
	const waiters, connections, keys = 58_000, 64, 58
	for b.Loop() {
		addr, p := startServer(b, "MAX_TOTAL_WAITERS="+strconv.Itoa(wire.MaxWaiters))
		key := func(i int) string { return fmt.Sprintf("order-%07d", i%keys) }
		holder := dialRaw(b, addr, "")
		pipeline(b, holder, keys, key, 0, wire.MaxLease)
		var clients []*rawClient
		for range connections {
			clients = append(clients, dialRaw(b, addr, ""))
		}
		before := residentBytes(b, p)
		for i := range waiters {
			clients[i%connections].acquire(key(i), wire.MaxWait, wire.MaxLease, uint64(i+1))
		}
		for _, c := range clients {
			if err := c.flush(); err != nil {
				b.Fatal(err)
			}
		}
		for _, c := range clients {
			// A probe comes back behind everything that was read before it.
			c.release("probe", 0)
			c.flush()
			if r, err := c.read(); err != nil || r.Op != wire.OpNotCurrent {
				b.Fatalf("answered %+v, %v", r, err)
			}
		}
		b.ReportMetric((residentBytes(b, p)-before)/waiters, "B/waiter")
	}
}

// BenchmarkMassExpiry: 50,000 leases, each with a waiter, end within one second.
// How late is each waiter's grant, counted from the earliest moment at which the
// lease can have ended, and what do the clients of other keys see meanwhile?
func BenchmarkMassExpiry(b *testing.B) {
	const (
		leases      = 50_000
		connections = 50
		each        = leases / connections
		lease       = 8 // seconds; the waiters are parked by then
	)
	for b.Loop() {
		addr, _ := startServer(b, "MAX_TOTAL_WAITERS="+strconv.Itoa(wire.MaxWaiters))
		late := make([]time.Duration, leases)
		var parked, ended sync.WaitGroup
		start := time.Now()
		for k := range connections {
			holder, waiter := dialRaw(b, addr, ""), dialRaw(b, addr, "")
			parked.Add(1)
			ended.Go(func() {
				key := func(i int) string { return fmt.Sprintf("order-%07d", k*each+i) }
				sent := holdPaced(b, holder, each, key, lease)
				for i := range each {
					waiter.acquire(key(i), wire.MaxWait, wire.MaxLease, uint64(i+1))
				}
				waiter.flush()
				parked.Done()
				for range each {
					r, err := waiter.read()
					if err != nil || r.Op != wire.OpAcquire {
						b.Errorf("answered %+v, %v", r, err)
						return
					}
					i := int(r.Owner) - 1
					late[k*each+i] = time.Since(sent[i]) - lease*time.Second
				}
			})
		}
		parked.Wait()
		b.ReportMetric(time.Since(start).Seconds(), "setup-s")
		var stop atomic.Bool
		others := make(chan []time.Duration)
		go func() { others <- probeOthers(b, dialRaw(b, addr, ""), start.Add(lease*time.Second), &stop) }()
		ended.Wait()
		stop.Store(true)
		report(b, late, "late")
		report(b, <-others, "others")
	}
}

// holdPaced takes n keys spread over a second and returns when each was asked for.
func holdPaced(tb testing.TB, c *rawClient, n int, key func(int) string, lease uint8) []time.Time {
	const steps = 50
	sent := make([]time.Time, n)
	begin := time.Now()
	for step := range steps {
		time.Sleep(time.Until(begin.Add(time.Duration(step) * time.Second / steps)))
		from, to := step*n/steps, (step+1)*n/steps
		for i := from; i < to; i++ {
			c.acquire(key(i), 0, lease, uint64(i+1))
			sent[i] = time.Now()
		}
		if err := c.flush(); err != nil {
			tb.Error(err)
		}
		for range to - from {
			if r, err := c.read(); err != nil || r.Op != wire.OpAcquire {
				tb.Errorf("answered %+v, %v", r, err)
			}
		}
	}
	return sent
}

// probeOthers takes and releases keys of its own from the given time on, and
// returns how long each acquire took.
func probeOthers(tb testing.TB, c *rawClient, from time.Time, stop *atomic.Bool) []time.Duration {
	var took []time.Duration
	time.Sleep(time.Until(from))
	for i := 0; !stop.Load(); i++ {
		key := fmt.Sprintf("other-%d", i%100)
		began := time.Now()
		c.acquire(key, 5, 30, 1)
		c.flush()
		r, err := c.read()
		if err != nil || r.Op != wire.OpAcquire {
			tb.Errorf("answered %+v, %v", r, err)
			break
		}
		took = append(took, time.Since(began))
		c.release(key, r.Token)
		c.flush()
		c.read()
	}
	return took
}

func report(b *testing.B, d []time.Duration, what string) {
	slices.Sort(d)
	for _, q := range []struct {
		at   float64
		name string
	}{{.5, "p50"}, {.99, "p99"}, {1, "max"}} {
		b.ReportMetric(float64(d[int(q.at*float64(len(d)-1))].Microseconds())/1000, what+"-"+q.name+"-ms")
	}
}
