package server

import (
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

func tokensOf(secrets ...string) (list []Token) {
	for _, s := range secrets {
		list = append(list, Token{Name: "token-" + s, Secret: []byte(s)})
	}
	return list
}

// The digest is right for exactly the configured tokens; without any it is right
// for exactly the empty one (docs/PROTOCOL.md, section 1).
func TestWhoIsLetIn(t *testing.T) {
	for _, test := range []struct {
		name   string
		tokens []string
		client string
		in     bool
	}{
		{"the token", []string{"s3cret"}, "s3cret", true},
		{"another token", []string{"s3cret"}, "s3creT", false},
		{"the empty token where there is one", []string{"s3cret"}, "", false},
		{"the first of several", []string{"old", "new"}, "old", true},
		{"the last of several", []string{"old", "new"}, "new", true},
		{"none of several", []string{"old", "new"}, "oldnew", false},
		{"no tokens and the empty token", nil, "", true},
		{"no tokens and some token", nil, "s3cret", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{Tokens: tokensOf(test.tokens...)})
				c := w.dial()
				c.challenge()
				c.send(c.digest(test.client))
				if test.in {
					c.expect("\n")
					c.send(acquire("k", 0, 1, 7))
					c.expect(granted("k", 1, 7))
				} else {
					c.expect("Eauth_failed\n")
					c.expectEnd()
				}
			})
		})
	}
}

// The ready frame of a single server is exactly one newline.
func TestTheReadyFrameIsOneNewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.dial()
		c.challenge()
		c.send(c.digest(""))
		time.Sleep(time.Hour)
		if got := string(c.end.unread()); got != "\n" {
			t.Errorf("the server sent %q, want one newline", got)
		}
	})
}

// A nonce is new for every connection.
func TestEveryConnectionHasItsOwnNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		seen := make(map[wire.Nonce]bool)
		for range 50 {
			c := w.dial()
			c.challenge()
			if seen[c.nonce] {
				t.Fatalf("nonce %s came twice", c.nonce)
			}
			seen[c.nonce] = true
		}
	})
}

// A wrong token is refused 250 ms after the digest arrived, not earlier and not
// later. Nothing is read meanwhile, and the connection counts against the limit.
func TestAWrongTokenIsRefusedAfter250ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Tokens: tokensOf("s3cret")})
		c := w.dial()
		c.challenge()
		time.Sleep(9 * time.Second)
		c.send(c.digest("wrong"))
		synctest.Wait()
		c.send(acquire("k", 0, 1, 7))

		time.Sleep(250*time.Millisecond - time.Nanosecond)
		synctest.Wait()
		c.expectNothing()
		if got := string(c.end.peer.unread()); got != acquire("k", 0, 1, 7) {
			t.Errorf("left unread: %q, want all that came behind the digest", got)
		}
		if got := w.server.Connections(); got != 1 {
			t.Errorf("%d connections, want 1: a refused one counts", got)
		}

		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := string(c.end.unread()); got != "Eauth_failed\n" {
			t.Errorf("after 250 ms the server had sent %q", got)
		}
		c.expect("Eauth_failed\n")
		c.expectEnd()
		c.end.Close()
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedAuth: 1})
		if held := w.service.Stats().Held; held != 0 {
			t.Errorf("a stranger's request was served: %d keys are held", held)
		}
	})
}

// A line that is no digest is refused as a wrong one, up to 256 bytes; a longer one
// gets no answer.
func TestHandshakeLines(t *testing.T) {
	for _, test := range []struct {
		name, line string
		answer     string
		reason     CloseReason
	}{
		{"empty", "\n", "Eauth_failed\n", ClosedAuth},
		{"short", "abc\n", "Eauth_failed\n", ClosedAuth},
		{"the digest with a carriage return", "DIGEST\r\n", "Eauth_failed\n", ClosedAuth},
		{"the digest with padding", "DIGEST=\n", "Eauth_failed\n", ClosedAuth},
		{"a request", acquire("k", 0, 1, 7), "Eauth_failed\n", ClosedAuth},
		{"256 bytes", strings.Repeat("x", 256) + "\n", "Eauth_failed\n", ClosedAuth},
		{"257 bytes", strings.Repeat("x", 257) + "\n", "", ClosedHandshake},
		{"257 bytes without an end", strings.Repeat("x", 257), "", ClosedHandshake},
		{"a digest behind 257 bytes", strings.Repeat("x", 257) + "\nDIGEST\n", "", ClosedHandshake},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{})
				c := w.dial()
				c.challenge()
				digest := strings.TrimSuffix(c.digest(""), "\n")
				c.send(strings.ReplaceAll(test.line, "DIGEST", digest))
				c.expect(test.answer)
				c.expectEnd()
				c.end.Close()
				synctest.Wait()
				w.seen.expect(t, map[CloseReason]int{test.reason: 1})
			})
		})
	}
}

// The digest and what follows it may come in any pieces, requests right behind it
// included: they are served in their order.
func TestTheHandshakeMayComeInPieces(t *testing.T) {
	whole := wire.DigestLen + 1 + len(acquire("a", 0, 9, 1)+release("a", 1)+acquire("b", 0, 9, 2))
	for cut := range whole + 1 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			c := w.dial()
			c.challenge()
			all := c.digest("") + acquire("a", 0, 9, 1) + release("a", 1) + acquire("b", 0, 9, 2)
			c.send(all[:cut])
			synctest.Wait()
			c.send(all[cut:])
			c.expect("\n" + granted("a", 1, 1) + released("a", 1) + granted("b", 2, 2))
		})
	}
}

// More requests may stand behind the digest than the handshake's buffer takes.
func TestManyRequestsBehindTheDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.dial()
		c.challenge()
		const n = 2000
		c.send(c.digest("") + strings.Repeat(release("k", 0), n))
		c.expect("\n" + strings.Repeat(notCurrent("k", 0), n))
	})
}

// A client may say all it has to say, its end included, before it hears anything.
func TestAllAtOnceAndTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.dial()
		c.challenge()
		c.send(c.digest("") + acquire("k", 0, 9, 1))
		c.finish()
		c.expect("\n" + granted("k", 1, 1))
		c.expectEnd()
		c.end.Close()
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedByClient: 1})
	})
}

// trickle sends a byte a second for as long as it goes.
func trickle(c net.Conn, data string) {
	for _, b := range []byte(data) {
		time.Sleep(time.Second)
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
	}
}

// sip reads a byte a second for as long as there is something.
func sip(c net.Conn) {
	for {
		time.Sleep(time.Second)
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return
		}
	}
}

// The whole handshake has 10 s, TLS negotiation included, whatever a client does
// with them; then the connection is closed.
func TestAHandshakeHasTenSecondsInAll(t *testing.T) {
	server, trusting := testTLS(t)
	for _, test := range []struct {
		name   string
		tls    bool
		client func(c *client)
	}{
		{"a silent client", false, func(c *client) {}},
		{"half a digest", false, func(c *client) { c.challenge(); c.send(c.digest("")[:20]) }},
		{"a byte a second", false, func(c *client) { c.challenge(); trickle(c.end, c.digest("")) }},
		{"silence where TLS is spoken", true, func(c *client) {}},
		{"silence behind TLS", true, func(c *client) { c.negotiate(trusting).challenge() }},
		{"TLS that takes nine seconds, then silence", true, func(c *client) {
			time.Sleep(9 * time.Second)
			c.negotiate(trusting).challenge()
		}},
		{"a byte of TLS a second", true, func(c *client) {
			trickle(c.end, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more of a hello")
		}},
		{"TLS read a byte at a time", true, func(c *client) {
			c.end.setWindow(1)
			c.end.Write(hello(trusting))
			sip(c.end)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{}
				if test.tls {
					cfg.TLS = server
				}
				w := newWorld(t, cfg)
				c := w.dial()
				c.end.SetDeadline(time.Now().Add(patience))
				var clients sync.WaitGroup
				defer clients.Wait()
				clients.Go(func() { test.client(c) })
				time.Sleep(10*time.Second - time.Nanosecond)
				synctest.Wait()
				w.seen.expect(t, map[CloseReason]int{})
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				w.seen.expect(t, map[CloseReason]int{ClosedHandshakeTimeout: 1})
				if !c.end.peer.isClosed() {
					t.Error("the socket is still open")
				}
				c.end.Close()
			})
		})
	}
}

// The 10 s end at the digest: what comes later runs on no clock of the handshake.
func TestTheTenSecondsEndAtTheDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.dial()
		c.challenge()
		time.Sleep(10*time.Second - time.Nanosecond)
		c.send(c.digest(""))
		c.expect("\n")
		time.Sleep(24 * time.Hour)
		c.send(acquire("k", 0, 1, 7))
		c.expect(granted("k", 1, 7))
		if read, write := c.end.peer.deadlines(); !read.IsZero() || !write.IsZero() {
			t.Errorf("deadlines are left over: read %v, write %v", read, write)
		}
	})
}

// A digest that comes with the end of the 10 s is in time or is not; either way the
// connection ends, or lives on, as it should.
func TestADigestInTheLastInstant(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			c := w.dial()
			c.challenge()
			time.Sleep(10 * time.Second)
			c.end.Write([]byte(c.digest("")))
			synctest.Wait()
			if c.end.peer.isClosed() {
				c.expectNothing()
				w.seen.expect(t, map[CloseReason]int{ClosedHandshakeTimeout: 1})
				return
			}
			c.expect("\n")
			c.send(acquire("k", 0, 1, 7))
			c.expect(granted("k", 1, 7))
		})
	}
}

// Rotated tokens hold from the next digest on; sessions that are open stay.
func TestTokensAreRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Tokens: tokensOf("old")})
		open, between, late := w.dial(), w.dial(), w.dial()
		open.authenticate("old")
		between.challenge()
		late.challenge()
		w.server.SetTokens(tokensOf("new"))
		between.send(between.digest("new"))
		between.expect("\n")
		late.send(late.digest("old"))
		late.expect("Eauth_failed\n")
		open.send(acquire("k", 0, 1, 7))
		open.expect(granted("k", 1, 7))

		w.server.SetTokens(nil)
		c := w.dial()
		c.authenticate("")
	})
}
