package server

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// overBoth runs a test over TCP and over TLS.
func overBoth(t *testing.T, test func(t *testing.T, start func(svc Service, cfg Config) *site)) {
	server, trusting := testTLS(t)
	t.Run("tcp", func(t *testing.T) {
		test(t, func(svc Service, cfg Config) *site { return newSiteFor(t, svc, cfg) })
	})
	t.Run("tls", func(t *testing.T) {
		test(t, func(svc Service, cfg Config) *site {
			cfg.TLS = server
			s := newSiteFor(t, svc, cfg)
			s.tls = trusting
			return s
		})
	})
}

func newSiteFor(t *testing.T, svc Service, cfg Config) *site {
	if svc == nil {
		return newSite(t, cfg)
	}
	return newSiteOf(t, svc, cfg)
}

// A lock is taken, waited for, handed over and released over real sockets.
func TestALockOverTheNetwork(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		s := start(nil, Config{})
		a, b := s.connect(), s.connect()
		a.send(acquire("k", 0, 250, 1))
		a.expect(granted("k", 1, 1))
		b.send("\n" + acquire("k", 100, 250, 2))
		b.send(release("other", 9))
		b.expect(notCurrent("other", 9)) // so its acquire waits by now
		a.send(release("k", 1))
		a.expect(released("k", 1))
		b.expect(granted("k", 2, 2))
		b.stream.Close()
		c := s.connect()
		c.send(acquire("k", 0, 1, 3))
		c.expect(timedOut("k", 3)) // a closed connection ends no lease
	})
}

// A client that sends on and on gets to read why it was thrown out: no reset
// swallows the reason.
func TestAResetDoesNotSwallowTheReason(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		s := start(nil, Config{})
		for i := range 20 {
			c := s.connect()
			c.send(acquire(fmt.Sprint("k", i), 0, 1, 7) + "Z" + strings.Repeat("x", 3000))
			for range 9 {
				c.send(strings.Repeat("x", 3000))
			}
			time.Sleep(10 * time.Millisecond) // a reset would be here by now
			c.expect(granted(fmt.Sprint("k", i), uint64(i+1), 7) + "Ebad_op\n")
			c.expectEnd()
		}
	})
}

// So does one with a wrong token that did not wait for the answer.
func TestAResetDoesNotSwallowTheRefusal(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		s := start(nil, Config{Tokens: tokensOf("right")})
		c := s.dial()
		c.challenge()
		sent := time.Now()
		c.send(c.digest("wrong") + strings.Repeat(acquire("k", 0, 1, 7), 1000))
		c.expect("Eauth_failed\n")
		if took := time.Since(sent); took < wire.RefusalDelay {
			t.Errorf("refused after %v, want 250 ms at least", took)
		}
		c.expectEnd()
	})
}

// One event that decides 1,500 waiters of one connection: every answer arrives, and
// the connection lives on.
func TestABurstOverTheNetwork(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		svc := answering()
		s := start(svc, Config{})
		c := s.connect()
		within(t, 10*time.Second, "the session is open", func() bool { return svc.anySink() != nil })
		decide(svc.anySink(), 1500)
		c.expect(timeouts(1500))
		c.send(release("k", 1))
		c.expect(released("k", 1))
	})
}

// What the socket does not take at once is sent when its client reads on, in order
// and whole.
func TestAWriteThatGoesOnInTheBackground(t *testing.T) {
	svc := answering()
	s := newSiteOf(t, svc, Config{}, func(c *net.TCPConn) { c.SetWriteBuffer(4096) })
	c := s.dial()
	c.nc.(*net.TCPConn).SetReadBuffer(4096)
	c.authenticate("")
	within(t, 10*time.Second, "the session is open", func() bool { return svc.anySink() != nil })
	for range 2 {
		before := time.Now()
		decide(svc.anySink(), 3000) // far more than both buffers hold
		if took := time.Since(before); took > 5*time.Second {
			t.Errorf("who decided waited %v for the client", took)
		}
		time.Sleep(300 * time.Millisecond)
		c.expect(timeouts(3000))
		c.send(release("k", 1))
		c.expect(released("k", 1))
	}
}

// Clients that share few keys hand them over by writing to each other's
// connections. No key is held twice, and tokens rise.
func TestManyHandOvers(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		const clients, keys, pairs = 16, 4, 100
		s := start(nil, Config{})
		var holders [keys]sync.Mutex
		var last [keys]uint64
		var all sync.WaitGroup
		for i := range clients {
			c := s.connect()
			all.Go(func() {
				k := i % keys
				key := fmt.Sprint("k", k)
				for range pairs {
					c.send(acquire(key, 255, 250, uint64(i)))
					got := replies(t, c.read(len(granted(key, 0, 0))))
					if len(got) != 1 || got[0].Op != wire.OpAcquire || got[0].Owner != uint64(i) {
						t.Errorf("client %d got %v", i, got)
						return
					}
					if !holders[k].TryLock() {
						t.Errorf("%s is held twice", key)
						return
					}
					if got[0].Token <= last[k] {
						t.Errorf("token %d of %s after %d", got[0].Token, key, last[k])
					}
					last[k] = got[0].Token
					holders[k].Unlock()
					c.send(release(key, got[0].Token))
					c.expect(released(key, got[0].Token))
				}
			})
		}
		all.Wait()
	})
}

// A shutdown in the middle of a storm of connections ends, and every connection
// with it.
func TestShutdownInAStorm(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		s := start(nil, Config{MaxConnections: 64})
		var storm sync.WaitGroup
		stop := make(chan struct{})
		for i := range 8 {
			storm.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					nc, err := net.Dial("tcp", s.addr)
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					nc.SetDeadline(time.Now().Add(time.Duration(i) * 5 * time.Millisecond))
					nc.Read(make([]byte, 100))
					nc.Close()
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown returned %v", err)
		}
		if left := s.server.Connections(); left != 0 {
			t.Errorf("%d connections are left", left)
		}
		close(stop)
		storm.Wait()
	})
}

// At the limit a connection is closed at once over real sockets too.
func TestTheLimitOverTheNetwork(t *testing.T) {
	s := newSite(t, Config{MaxConnections: 2})
	s.connect()
	s.connect()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := nc.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a connection beyond the limit was served")
	}
	within(t, 10*time.Second, "the close is counted", func() bool { return s.seen.reasons()[ClosedLimit] == 1 })
}

// Over real sockets too, written to directly or over TLS, every byte is counted.
func TestBytesOverTheNetworkAreCounted(t *testing.T) {
	overBoth(t, func(t *testing.T, start func(Service, Config) *site) {
		s := start(nil, Config{})
		c := s.connect()
		before := s.server.Stats()
		ask, answer := acquire("k", 0, 250, 1), granted("k", 1, 1)
		c.send(ask)
		c.expect(answer)
		c.send(release("k", 1)) // when that is answered, what came before is counted
		c.expect(released("k", 1))
		after := s.server.Stats()
		if got, least := after.Received-before.Received, len(ask+release("k", 1)); got < uint64(least) {
			t.Errorf("received %d bytes, want at least %d", got, least)
		}
		if got, least := after.Sent-before.Sent, len(answer); got < uint64(least) {
			t.Errorf("sent %d bytes, want at least %d", got, least)
		}
	})
}
