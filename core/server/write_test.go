package server

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// timeouts returns what a client reads when n acquires were decided.
func timeouts(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(timedOut("k", uint64(i)))
	}
	return b.String()
}

// What one read brings is answered in as few writes as can be: 64 replies in each.
func TestSixtyFourRepliesInAWrite(t *testing.T) {
	reply := len(released("k", 1))
	for _, test := range []struct {
		requests int
		writes   []int // replies in each
	}{
		{1, []int{1}},
		{64, []int{64}},
		{65, []int{64, 1}},
		{200, []int{64, 64, 64, 8}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorldOf(t, answering(), Config{})
			c := w.connect()
			c.end.peer.takeWrites()
			c.send(strings.Repeat(release("k", 1), test.requests))
			c.expect(strings.Repeat(released("k", 1), test.requests))
			synctest.Wait()
			got := c.end.peer.takeWrites()
			for i := range got {
				got[i] /= reply
			}
			if !slices.Equal(got, test.writes) {
				t.Errorf("%d requests: replies in each write: %v, want %v", test.requests, got, test.writes)
			}
		})
	}
}

// The longest replies fit into one write's buffer.
func TestABatchOfTheLongestReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := strings.Repeat("k", wire.MaxKey)
		svc := &scripted{onAcquire: func(sink service.Sink, a service.Acquire) {
			sink.Deliver(service.Answer{Outcome: service.Granted, Key: a.Key, Token: 5, Owner: a.Owner})
		}}
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		c.send(strings.Repeat(acquire(key, 0, 1, 7), 64))
		c.expect(strings.Repeat(granted(key, 5, 7), 64))
	})
}

// While 256 replies wait the connection is not read; when its client reads on, it
// goes on, and nothing is lost.
func TestWhile256RepliesWaitTheConnectionIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		c.send(acquire("k", 9, 9, 0))
		synctest.Wait()
		c.end.setWindow(0)
		decide(svc.sink(), 1) // a write of somebody else is under way
		synctest.Wait()

		const n = 2000
		c.send(strings.Repeat(release("k", 1), n))
		synctest.Wait()
		if got := svc.count() - 1; got != 256 {
			t.Errorf("%d requests were taken on, want 256", got)
		}
		if unread := len(c.end.peer.unread()); unread < 1000*len(release("k", 1)) {
			t.Errorf("%d bytes are left unread", unread)
		}
		time.Sleep(time.Second / 2)
		c.end.setWindow(defaultWindow)
		c.expect(timeouts(1) + strings.Repeat(released("k", 1), n))
		c.send(release("k", 2))
		c.expect(released("k", 2))
	})
}

// A burst that the socket takes at once is not slowness: one event may decide 1,500
// waiters of one connection, and the connection lives on.
func TestABurstOfAnswersIsNotSlowness(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, w *world, connect func() *client) {
		holder, c := connect(), connect()
		holder.send(acquire("k", 0, 250, 0))
		holder.expect(granted("k", 1, 0))
		const n = 1500
		for i := range n {
			c.send(acquire("k", 9, 9, uint64(i)))
			synctest.Wait()
		}
		told := make(map[uint64]bool)
		for _, r := range replies(t, c.read(n*len(timedOut("k", 0)))) {
			if r.Op != wire.OpTimeout || told[r.Owner] {
				t.Fatalf("the client got %+v", r)
			}
			told[r.Owner] = true
		}
		if len(told) != n {
			t.Fatalf("%d answers, want %d", len(told), n)
		}
		time.Sleep(time.Minute)
		c.send(acquire("other", 0, 9, 7))
		c.expect(granted("other", 2, 7))
		w.seen.expect(t, map[CloseReason]int{})
	})
}

// slowClients is every way of not reading one's answers, with when and why the
// server has enough, counted from the first write that waits.
var slowClients = []struct {
	name    string
	replies int // in one event
	window  int // what the socket takes
	reads   bool
	after   time.Duration // 0: never
}{
	{"256 replies behind a write of 1 s", 64 + 256, 0, false, time.Second},
	{"256 replies behind a write of 1 s that makes progress", 64 + 256, 0, true, time.Second},
	{"255 replies, no progress for 5 s", 64 + 255, 0, false, 5 * time.Second},
	{"one reply, no progress for 5 s", 1, 0, false, 5 * time.Second},
	{"255 replies, a byte a second", 64 + 255, 0, true, 0},
	// When the last byte was taken is known to a step of the write.
	{"all but a byte, no progress for 5 s", 64 + 256, 320*len(timedOut("k", 0)) - 1, false, 5*time.Second + writeStep},
}

// takeSlowly takes a byte a second, so many.
func takeSlowly(c *memConn, bytes int) {
	for range bytes {
		time.Sleep(time.Second)
		c.allow(1)
	}
}

// A connection that does not read its answers is closed when 256 replies are behind
// a write that has been under way for 1 s, or when a write makes no progress for
// 5 s. Its neighbour notices nothing.
func TestASlowConnectionIsClosed(t *testing.T) {
	server, trusting := testTLS(t)
	for _, overTLS := range []bool{false, true} {
		for _, test := range slowClients {
			if overTLS && test.window > 0 {
				continue // TLS has bytes of its own
			}
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					svc := answering()
					cfg := Config{}
					if overTLS {
						cfg.TLS = server
					}
					w := newWorldOf(t, svc, cfg)
					c := w.dial()
					if overTLS {
						c.negotiate(trusting)
					}
					c.authenticate("")
					time.Sleep(time.Minute)
					sink := svc.sink()

					c.end.setWindow(test.window)
					decide(sink, test.replies)
					if test.reads {
						var sips sync.WaitGroup
						defer sips.Wait()
						sips.Go(func() { takeSlowly(c.end, 100) })
					}
					if test.after == 0 {
						time.Sleep(90 * time.Second)
						synctest.Wait()
						w.seen.expect(t, map[CloseReason]int{})
						return
					}
					neighbour := w.dial()
					if overTLS {
						neighbour.negotiate(trusting)
					}
					neighbour.authenticate("")
					neighbour.send(release("k", 1))
					neighbour.expect(released("k", 1))

					time.Sleep(test.after - time.Nanosecond)
					synctest.Wait()
					w.seen.expect(t, map[CloseReason]int{})
					time.Sleep(time.Nanosecond)
					synctest.Wait()
					w.seen.expect(t, map[CloseReason]int{ClosedSlow: 1})
					neighbour.send(release("k", 2))
					neighbour.expect(released("k", 2))
				})
			})
		}
	}
}

// The second is each write's own: a client that takes them one by one keeps its
// connection, however much waits behind them.
func TestEachWriteHasItsOwnSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		sink := svc.sink()
		c.end.setWindow(0)
		const writes = 20
		decide(sink, writes*64+256)
		for range writes {
			time.Sleep(900 * time.Millisecond)
			c.end.allow(len(timeouts(64)))
		}
		c.end.setWindow(defaultWindow)
		c.expect(timeouts(writes*64 + 256))
		w.seen.expect(t, map[CloseReason]int{})
	})
}

// A write that waited leaves no deadline behind: the connection is as good as new.
func TestASlowMomentIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		for range 3 {
			c.end.setWindow(0)
			decide(svc.sink(), 100)
			time.Sleep(4 * time.Second)
			c.end.setWindow(defaultWindow)
			c.expect(timeouts(100))
			synctest.Wait()
			if read, write := c.end.peer.deadlines(); !read.IsZero() || !write.IsZero() {
				t.Fatalf("deadlines are left over: read %v, write %v", read, write)
			}
			time.Sleep(time.Hour)
			decide(svc.sink(), 10)
			c.expect(timeouts(10))
		}
	})
}

// Many who flush a connection at once, while its client reads nothing, wait for
// nobody and start no goroutine each.
func TestManyFlushesOfAStalledConnection(t *testing.T) {
	server, trusting := testTLS(t)
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{TLS: server})
		c := w.dialTLS(trusting)
		c.authenticate("")
		synctest.Wait()
		c.end.setWindow(0)
		sink := svc.sink()
		started := goroutinesStartedBy(func() {
			for i := range 200 {
				sink.Deliver(service.Answer{Outcome: service.TimedOut, Key: "k", Owner: uint64(i)})
				sink.Flush()
			}
		})
		if started > 20 { // the runtime starts some of its own
			t.Errorf("200 flushes started %d goroutines, want one or two", started)
		}
		c.end.setWindow(defaultWindow)
		c.expect(timeouts(200))
	})
}
