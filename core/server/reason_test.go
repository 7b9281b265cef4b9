package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/service"
)

// closes brings about a close for each reason there is. Where a reason has several
// causes they are listed.
var closes = []struct {
	name   string
	reason CloseReason
	max    int // connections; 0 for the default
	tls    bool
	loud   string // the level at which an operator is told; "" when not
	do     func(w *world)
}{
	{"the client closes", ClosedByClient, 0, false, "", func(w *world) { w.connect().end.Close() }},
	{"the client half-closes", ClosedByClient, 0, false, "", func(w *world) { w.connect().end.CloseWrite() }},
	{"the client resets", ClosedReset, 0, false, "", func(w *world) { w.connect().end.Reset() }},
	{"the client resets within a frame", ClosedReset, 0, false, "", func(w *world) {
		c := w.connect()
		c.send("A")
		synctest.Wait()
		c.end.Reset()
	}},
	{"one too many", ClosedLimit, 1, false, "WARN", func(w *world) {
		w.connect()
		w.dial()
	}},
	{"a newer stranger", ClosedDisplaced, 4, false, "WARN", func(w *world) {
		w.dial()
		w.dial()
	}},
	{"the client closes in the handshake", ClosedHandshake, 0, false, "", func(w *world) { w.dial().end.Close() }},
	{"the client resets in the handshake", ClosedHandshake, 0, false, "", func(w *world) { w.dial().end.Reset() }},
	{"the client closes within its digest", ClosedHandshake, 0, false, "INFO", func(w *world) {
		c := w.dial()
		c.challenge()
		c.send("abc")
		c.end.Close()
	}},
	{"a long line", ClosedHandshake, 0, false, "INFO", func(w *world) { w.dial().send(strings.Repeat("x", 300)) }},
	{"no digest in time", ClosedHandshakeTimeout, 0, false, "INFO", func(w *world) {
		w.dial()
		time.Sleep(10 * time.Second)
	}},
	{"no TLS in time", ClosedHandshakeTimeout, 0, true, "INFO", func(w *world) {
		w.dial()
		time.Sleep(10 * time.Second)
	}},
	{"no TLS", ClosedTLS, 0, true, "WARN", func(w *world) { w.dial().send("hello, is this a plain server?") }},
	{"the client closes within TLS", ClosedTLS, 0, true, "", func(w *world) { w.dial().end.Close() }},
	{"an answer is not read", ClosedSlow, 0, false, "", func(w *world) {
		c := w.connect()
		c.end.setWindow(0)
		c.send(acquire("k", 0, 1, 7))
		time.Sleep(5 * time.Second)
	}},
	{"the client is gone when it is answered", ClosedWrite, 0, false, "", func(w *world) {
		// Its reset shows at the write, since nothing reads behind a full socket.
		c := w.connect()
		c.end.setWindow(0)
		c.send(acquire("k", 0, 1, 7))
		synctest.Wait()
		c.end.Reset()
	}},
	{"a shutdown", ClosedDrain, 0, false, "", func(w *world) {
		w.connect()
		w.shutdown(time.Minute)
	}},
	{"a shutdown in the handshake", ClosedDrain, 0, false, "", func(w *world) {
		w.dial()
		w.shutdown(time.Minute)
	}},
	{"a shutdown within TLS", ClosedDrain, 0, true, "", func(w *world) {
		w.dial()
		w.shutdown(time.Minute)
	}},
	{"a shutdown before a refusal", ClosedDrain, 0, false, "", func(w *world) {
		c := w.dial()
		c.challenge()
		c.send(c.digest("wrong"))
		synctest.Wait()
		w.shutdown(time.Minute)
	}},
	{"a shutdown within a frame", ClosedDrain, 0, false, "", func(w *world) {
		w.connect().send("A")
		synctest.Wait()
		w.shutdown(time.Minute)
	}},
	{"a wrong token", ClosedAuth, 0, false, "WARN", func(w *world) {
		c := w.dial()
		c.challenge()
		c.send(c.digest("wrong"))
		c.expect("Eauth_failed\n")
		c.end.Close()
	}},
	{"another node leads", ClosedMoved, 0, false, "", func(w *world) {
		c := w.connect()
		w.server.each(func(c *conn) { c.End(service.EndMoved, "n2:1") })
		c.expect("Mn2:1\n")
		c.end.Close()
	}},
	{"no leader is known", ClosedNoLeader, 0, false, "", func(w *world) {
		c := w.connect()
		w.server.each(func(c *conn) { c.End(service.EndNoLeader, "") })
		c.expect("Eno_leader\n")
		c.end.Close()
	}},
	{"the tokens are used up", ClosedNotActive, 0, false, "", func(w *world) {
		c := w.connect()
		c.send(acquire("a", 0, 1, 1) + acquire("b", 0, 1, 2))
		c.end.CloseWrite()
	}},
}

// Every close has exactly one reason, which the observer is told and the log shows
// at debug level; no connection is closed without, and none twice.
func TestEveryCloseHasOneReason(t *testing.T) {
	server, _ := testTLS(t)
	all := closes
	for _, bad := range badFrames {
		c := closes[0]
		c.name, c.reason = bad.name, bad.reason
		c.do = func(w *world) {
			c := w.connect()
			c.send(bad.bytes)
			if bad.ends {
				c.finish()
			}
			c.expect(bad.answer)
			c.end.Close()
		}
		all = append(slices.Clip(all), c)
	}
	caused := make(map[CloseReason]bool)
	for _, test := range all {
		caused[test.reason] = true
		t.Run(string(test.reason)+"/"+test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log syncBuffer
				cfg := Config{MaxConnections: test.max, Logger: debugLog(&log)}
				if test.tls {
					cfg.TLS = server
				}
				svc := service.New(local.New(math.MaxUint64), service.Config{Limits: service.DefaultLimits()})
				t.Cleanup(svc.Close)
				w := newWorldOf(t, svc, cfg)
				test.do(w)
				synctest.Wait()
				w.seen.expect(t, map[CloseReason]int{test.reason: 1})
				if n := strings.Count(log.String(), "msg=\"connection closed\""); n != 1 {
					t.Errorf("%d closes in the log, want 1:\n%s", n, &log)
				}
				if !strings.Contains(log.String(), "level=DEBUG msg=\"connection closed\" remote=mem client=\"\" reason="+string(test.reason)+" lasted=") {
					t.Errorf("the close is not in the log as it should be:\n%s", &log)
				}
				loud := strings.Count(log.String(), "level=WARN") + strings.Count(log.String(), "level=INFO")
				if test.loud != "" && (loud != 1 || !strings.Contains(log.String(), "level="+test.loud) || !strings.Contains(log.String(), "remote=mem reason="+string(test.reason))) {
					t.Errorf("a client that did not get in is not in the log, at %s, once:\n%s", test.loud, &log)
				}
				if test.loud == "" && loud != 0 || strings.Contains(log.String(), "level=ERROR") {
					t.Errorf("a close is no operator's matter:\n%s", &log)
				}
			})
		})
	}
	for _, reason := range CloseReasons() {
		if !caused[reason] {
			t.Errorf("no test brings %s about", reason)
		}
	}
}

// CloseReasons has every reason that is declared, once.
func TestCloseReasonsIsComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Closed") {
			declared++
		}
		return true
	})
	set := make(map[CloseReason]bool)
	for _, reason := range CloseReasons() {
		set[reason] = true
	}
	if len(set) != declared || len(CloseReasons()) != declared {
		t.Errorf("CloseReasons has %d, %d reasons are declared", len(CloseReasons()), declared)
	}
	if set[""] {
		t.Error("an empty reason")
	}
}

// The first reason stands, whatever comes about while the connection ends.
func TestTheFirstReasonStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		c := w.connect()
		c.end.setWindow(0)
		c.send("Z")
		synctest.Wait()
		go w.shutdown(time.Second) // cuts it while its E waits
		time.Sleep(time.Minute)
		w.seen.expect(t, map[CloseReason]int{ClosedOp: 1})
	})
}

// Nothing of a client's token, nor of what it sent, gets into a log.
func TestNoSecretsInTheLog(t *testing.T) {
	server, trusting := testTLS(t)
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		w := newWorld(t, Config{TLS: server, Logger: debugLog(&log), Tokens: []Token{{Name: "shop", Secret: []byte("s3cret-s3cret")}}})
		c := w.dialTLS(trusting)
		c.challenge()
		right := c.digest("s3cret-s3cret")
		c.send(right)
		c.expect("\n")
		c.send(acquire("secret-key\r\x1b[31m", 0, 1, 7) + "Z")
		c.end.CloseWrite()
		wrong := w.dialTLS(trusting)
		wrong.challenge()
		wrong.send(wrong.digest("s3cret-guess"))
		wrong.expect("Eauth_failed\n")
		w.dial().send("s3cret-s3cret\n")
		time.Sleep(time.Minute)
		for _, secret := range []string{"s3cret", strings.TrimSpace(right), string(c.nonce[:]), "secret-key", "\x1b"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has %q:\n%s", secret, &log)
			}
		}
		if !strings.Contains(log.String(), "client=shop reason=bad_op") {
			t.Errorf("the log does not name the token:\n%s", &log)
		}
	})
}
