package server

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/service"
)

// badFrames is everything a client can send that ends its session, with the reason
// on the wire. no_leader is a cluster's alone.
var badFrames = []struct {
	name, bytes string
	ends        bool // the client half-closes behind it
	answer      string
	reason      CloseReason
}{
	{"an unknown op", "Z", false, "Ebad_op\n", ClosedOp},
	{"a reply's op", "T", false, "Ebad_op\n", ClosedOp},
	{"a frame cut by the client's end", acquire("key", 0, 1, 7)[:12], true, "Ebad_request\n", ClosedRequest},
	{"an op and the client's end", "R", true, "Ebad_request\n", ClosedRequest},
	{"a frame that stops", acquire("key", 0, 1, 7)[:12], false, "Ebad_request\n", ClosedRequest},
	{"193 bytes without a newline", release(strings.Repeat("k", 184), 1)[:193], false, "Eline_too_long\n", ClosedLine},
	{"lease 0", acquire("key", 0, 0, 7), false, "Ebad_lease\n", ClosedLease},
	{"lease 251", acquire("key", 0, 251, 7), false, "Ebad_lease\n", ClosedLease},
	{"a bad lease before a bad key", acquire("", 0, 255, 7), false, "Ebad_lease\n", ClosedLease},
	{"no key", release("", 1), false, "Ebad_key\n", ClosedKey},
	{"a key with a space", acquire("a b", 0, 1, 7), false, "Ebad_key\n", ClosedKey},
	{"a key that is not UTF-8", acquire("\xff", 0, 1, 7), false, "Ebad_key\n", ClosedKey},
	{"a key of 129 bytes", acquire(strings.Repeat("k", 129), 0, 1, 7), false, "Ebad_key\n", ClosedKey},
}

// Grants and releases that were decided before a bad frame stand and are answered
// before the E; waiters leave; what comes behind it is not looked at. Then the
// server half-closes, and the client's own close ends the connection.
func TestABadFrameEndsTheSession(t *testing.T) {
	for _, test := range badFrames {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{})
				other, c := w.connect(), w.connect()
				other.send(acquire("other", 0, 250, 1))
				other.expect(granted("other", 1, 1))

				behind := acquire("behind", 0, 250, 5)
				if test.reason == ClosedRequest {
					behind = ""
				}
				c.send(acquire("first", 0, 250, 2) + acquire("other", 100, 250, 3) + acquire("second", 0, 250, 4) +
					release("first", 2) + test.bytes + behind)
				if test.ends {
					c.finish()
				}
				c.expect(granted("first", 2, 2) + granted("second", 3, 4) + released("first", 2) + test.answer)
				c.expectEnd()

				stats := w.service.Stats()
				if stats.Held != 2 {
					t.Errorf("%d keys are held, want other and second alone", stats.Held)
				}
				if stats.Waiters != 0 {
					t.Errorf("%d waiters, want none: it has left", stats.Waiters)
				}
				c.end.Close()
				synctest.Wait()
				w.seen.expect(t, map[CloseReason]int{test.reason: 1})
			})
		})
	}
}

// The bad frame may come in any pieces, and alone as a session's first word.
func TestABadFrameInPieces(t *testing.T) {
	for _, test := range badFrames {
		for cut := range len(test.bytes) + 1 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{})
				c := w.connect()
				c.send(test.bytes[:cut])
				synctest.Wait()
				c.send(test.bytes[cut:])
				if test.ends {
					c.finish()
				}
				c.expect(test.answer)
				c.expectEnd()
			})
		}
	}
}

// When the tokens are used up an acquire ends its session with not_active, in the
// caller's own session as in a waiter's; releases go on.
func TestUsedUpTokensEndAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := service.New(local.New(math.MaxUint64), service.Config{Limits: service.DefaultLimits()})
		t.Cleanup(svc.Close)
		w := newWorldOf(t, svc, Config{})
		c, waiter, late := w.connect(), w.connect(), w.connect()
		c.send(acquire("k", 0, 250, 1))
		c.expect(granted("k", math.MaxUint64, 1))
		waiter.send(acquire("k", 100, 250, 2))
		late.send(release("other", 5) + acquire("other", 0, 250, 3) + release("other", 6))
		late.expect(notCurrent("other", 5) + notCurrent("other", 6) + "Enot_active\n")
		late.expectEnd()
		c.send(release("k", math.MaxUint64))
		c.expect(released("k", math.MaxUint64))
		waiter.expect("Enot_active\n")
		waiter.expectEnd()
		late.end.Close()
		waiter.end.Close()
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedNotActive: 2})
	})
}

// After an E the server drops what still comes, so that no reset swallows the
// reason: until the client closes, and for 64 KiB or 1 s at the longest.
func TestTheServerLingersAfterAnError(t *testing.T) {
	start := func(t *testing.T) (*world, *client) {
		w := newWorld(t, Config{})
		c := w.connect()
		c.send("Z")
		synctest.Wait()
		return w, c
	}
	t.Run("until the client closes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, c := start(t)
			for range 9 {
				time.Sleep(100 * time.Millisecond)
				c.send(strings.Repeat("x", 7000))
			}
			c.expect("Ebad_op\n")
			c.expectEnd()
			c.end.Close()
			synctest.Wait()
			w.seen.expect(t, map[CloseReason]int{ClosedOp: 1})
		})
	})
	t.Run("for 1 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, _ := start(t)
			time.Sleep(time.Second - time.Nanosecond)
			synctest.Wait()
			w.seen.expect(t, map[CloseReason]int{})
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			w.seen.expect(t, map[CloseReason]int{ClosedOp: 1})
		})
	})
	t.Run("for 64 KiB", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, c := start(t)
			c.send(strings.Repeat("x", 64<<10-1))
			synctest.Wait()
			w.seen.expect(t, map[CloseReason]int{})
			c.send("x")
			synctest.Wait()
			w.seen.expect(t, map[CloseReason]int{ClosedOp: 1})
		})
	})
	t.Run("through a shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, c := start(t)
			go w.shutdown(time.Minute)
			synctest.Wait()
			c.send(strings.Repeat("x", 1000)) // would be answered by a reset
			c.expect("Ebad_op\n")
			c.expectEnd()
		})
	})
	t.Run("after a wrong token", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			c := w.dial()
			c.challenge()
			c.send(c.digest("wrong"))
			time.Sleep(250 * time.Millisecond)
			synctest.Wait()
			c.send(acquire("k", 0, 1, 7))
			c.expect("Eauth_failed\n")
			c.expectEnd()
			time.Sleep(time.Second)
			synctest.Wait()
			w.seen.expect(t, map[CloseReason]int{ClosedAuth: 1})
		})
	})
}

// At a FIN between frames waiters leave and queued replies are sent; then the
// connection counts as closed. What it holds stays held.
func TestAFINBetweenFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		other, c := w.connect(), w.connect()
		other.send(acquire("other", 0, 250, 1))
		other.expect(granted("other", 1, 1))
		c.send("\n" + acquire("mine", 0, 250, 2) + acquire("other", 100, 250, 3) + release("mine", 9) + "\n")
		c.finish()
		c.expect(granted("mine", 2, 2) + notCurrent("mine", 9))
		c.expectEnd()
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedByClient: 1})
		other.send(acquire("mine", 0, 1, 4) + release("other", 1) + acquire("other", 0, 1, 5))
		other.expect(timedOut("mine", 4) + released("other", 1) + granted("other", 3, 5))
	})
}

// A frame that has begun may go 5 s without a byte. Each byte starts them anew, and
// between frames a client may be silent for ever.
func TestAFrameMustMakeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.connect()
		time.Sleep(24 * time.Hour)
		frame := acquire("key", 0, 250, 7)
		for i := range frame {
			c.send(frame[i : i+1])
			if i < len(frame)-1 {
				time.Sleep(5*time.Second - time.Nanosecond)
			}
		}
		c.expect(granted("key", 1, 7))
		time.Sleep(24 * time.Hour)

		c.send("\n" + frame[:3])
		synctest.Wait()
		began := w.now()
		time.Sleep(3 * time.Second)
		c.send(frame[3:4])
		c.expect("Ebad_request\n")
		if took := w.now() - began; took != 8*time.Second {
			t.Errorf("bad_request came after %v, want 5 s after the last byte, which came after 3 s", took)
		}
		c.expectEnd()
	})
}

// An op byte alone is a frame that has begun, right behind the digest too.
func TestHalfAFrameBehindTheDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.dial()
		c.challenge()
		c.send(c.digest("") + "A")
		c.expect("\n")
		began := w.now()
		c.expect("Ebad_request\n")
		if took := w.now() - began; took != 5*time.Second {
			t.Errorf("bad_request came after %v, want 5 s", took)
		}
	})
}

// The 5 s don't run while the server itself is not reading.
func TestTheServersOwnPauseIsNoFaultOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		svc := &scripted{onRelease: func(sink service.Sink, key string, token uint64) {
			<-gate // the release lane is full
			sink.Deliver(service.Answer{Outcome: service.Released, Key: key, Token: token})
		}}
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		c.send(release("a", 1) + release("b", 2)[:5])
		time.Sleep(time.Minute)
		close(gate)
		c.expect(released("a", 1))
		time.Sleep(5*time.Second - time.Nanosecond)
		c.send(release("b", 2)[5:])
		c.expect(released("b", 2))
	})
}
