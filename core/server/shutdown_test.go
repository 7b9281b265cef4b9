package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// drain stops a server as a node does: no new connections, Busy for acquires, then
// the connections.
func (w *world) drain(most time.Duration) error {
	w.server.StopAccepting()
	w.service.Drain()
	return w.shutdown(most)
}

// A drained server answers every waiter with B, and what was read before the end;
// then it half-closes, and is done when its clients have closed.
func TestShutdownAnswersWhatIsUnderWay(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, w *world, connect func() *client) {
		holder, waiter, idle := connect(), connect(), connect()
		holder.send(acquire("k", 0, 250, 1))
		holder.expect(granted("k", 1, 1))
		waiter.send(acquire("k", 100, 250, 2) + acquire("k", 100, 250, 3))
		synctest.Wait()

		done := make(chan error)
		go func() { done <- w.drain(time.Minute) }()
		// Of two waiters that end in the same instant either may be told first.
		got := replies(t, waiter.read(len(busy("k", 2)+busy("k", 3))))
		if got[0].Op != 'B' || got[1].Op != 'B' || got[0].Owner+got[1].Owner != 5 {
			t.Errorf("the waiters were told %v", got)
		}
		for _, c := range []*client{holder, waiter, idle} {
			c.expectEnd()
			c.end.Close()
		}
		start := w.now()
		if err := <-done; err != nil {
			t.Errorf("Shutdown returned %v", err)
		}
		if w.now() != start {
			t.Errorf("it took %v after the last client had closed", w.now()-start)
		}
		w.seen.expect(t, map[CloseReason]int{ClosedDrain: 3})
		if held := w.service.Stats().Held; held != 1 {
			t.Errorf("%d keys are held, want the holder's: a shutdown ends no lease", held)
		}
	})
}

// Until its connection ends a client that is drained is served: releases go on,
// acquires get B.
func TestADrainedServerStillServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.connect()
		c.send(acquire("k", 0, 250, 1))
		c.expect(granted("k", 1, 1))
		w.server.StopAccepting()
		w.service.Drain()
		c.send(acquire("other", 0, 250, 2) + release("k", 1))
		c.expect(busy("other", 2) + released("k", 1))
		if c, s := newLink(); true {
			w.server.admit(s)
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a new connection was served")
			}
		}
	})
}

// A client that never closes and one that never reads cost a shutdown a second and
// its context.
func TestShutdownEndsWithinItsContext(t *testing.T) {
	t.Run("a client that does not close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			w.connect()
			start := w.now()
			if err := w.drain(time.Minute); err != nil {
				t.Errorf("Shutdown returned %v", err)
			}
			if took := w.now() - start; took != time.Second {
				t.Errorf("it took %v, want the 1 s that it lingers", took)
			}
		})
	})
	t.Run("a client that does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			c, other := w.connect(), w.connect()
			other.send(acquire("k", 0, 250, 1))
			other.expect(granted("k", 1, 1))
			c.send(acquire("k", 100, 250, 2))
			synctest.Wait()
			c.end.setWindow(0)
			start := w.now()
			if err := w.drain(3 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown returned %v, want that its time was over", err)
			}
			if took := w.now() - start; took != 3*time.Second {
				t.Errorf("it took %v, want its 3 s", took)
			}
			w.seen.expect(t, map[CloseReason]int{ClosedDrain: 2})
		})
	})
	t.Run("no time at all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			w.connect()
			w.dial()
			synctest.Wait()
			start := w.now()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := w.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Shutdown returned %v", err)
			}
			if took := w.now() - start; took != 0 {
				t.Errorf("it took %v", took)
			}
			w.seen.expect(t, map[CloseReason]int{ClosedDrain: 2})
		})
	})
}

// Connections in their handshake are closed at once, wherever they are in it.
func TestShutdownDuringHandshakes(t *testing.T) {
	server, trusting := testTLS(t)
	for _, test := range []struct {
		name   string
		tls    bool
		client func(c *client)
	}{
		{"silent", false, func(c *client) {}},
		{"before the digest", false, func(c *client) { c.challenge() }},
		{"within the digest", false, func(c *client) { c.challenge(); c.send("abc") }},
		{"before the refusal", false, func(c *client) { c.challenge(); c.send(c.digest("wrong")) }},
		{"before TLS", true, func(c *client) {}},
		{"within TLS", true, func(c *client) { c.end.Write(hello(trusting)[:100]) }},
		{"behind TLS", true, func(c *client) { c.negotiate(trusting).challenge() }},
	} {
		for _, cut := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{}
				if test.tls {
					cfg.TLS = server
				}
				w := newWorld(t, cfg)
				test.client(w.dial())
				synctest.Wait()
				start := w.now()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if cut {
					cancel()
				}
				w.server.Shutdown(ctx)
				if took := w.now() - start; took != 0 {
					t.Errorf("%s: it took %v", test.name, took)
				}
				w.seen.expect(t, map[CloseReason]int{ClosedDrain: 1})
			})
		}
	}
}

// Several shutdowns at once, and one after the end, return when all is over.
func TestShutdownTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.connect()
		done := make(chan error)
		for range 3 {
			go func() { done <- w.shutdown(time.Minute) }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Errorf("Shutdown returned %v", err)
			}
		}
		if err := w.shutdown(time.Minute); err != nil {
			t.Errorf("Shutdown after the end returned %v", err)
		}
	})
}
