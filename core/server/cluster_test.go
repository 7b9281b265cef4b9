package server

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// The tests here are about a node of a cluster: its ready frame, L, M, and how
// sessions end (docs/PROTOCOL.md, sections 1 to 3).

// onEither runs a test over a plain connection and over TLS.
func onEither(t *testing.T, test func(t *testing.T, cfg Config, dial func(w *world) *client)) {
	server, trusting := testTLS(t)
	for name, cfg := range map[string]*tls.Config{"plain": nil, "TLS": server} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, Config{TLS: cfg}, func(w *world) *client {
					c := w.dial()
					if cfg != nil {
						c.negotiate(trusting)
					}
					c.challenge()
					return c
				})
			})
		})
	}
}

// The ready frame of a node that knows its leader is L, with nothing before it.
func TestTheReadyFrameNamesTheLeader(t *testing.T) {
	onEither(t, func(t *testing.T, cfg Config, dial func(w *world) *client) {
		w := newWorldOf(t, &scripted{leader: "n1.example:5225"}, cfg)
		c := dial(w)
		c.send(c.digest(""))
		c.expect("Ln1.example:5225\n")
	})
}

// Until it knows one the frame is held back, as long as it takes, and nothing that
// the client asks is decoded; then all of it is, in order.
func TestTheReadyFrameIsHeldBack(t *testing.T) {
	for _, test := range []struct {
		name         string
		before, then string // what is sent before the frame and after it
	}{
		{"the client waits", "", release("a", 1) + release("b", 2)},
		{"the client has asked", release("a", 1) + release("b", 2), ""},
		{"the client is within a request", release("a", 1) + release("b", 2)[:5], release("b", 2)[5:]},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEither(t, func(t *testing.T, cfg Config, dial func(w *world) *client) {
				svc := answering()
				svc.unready = true
				w := newWorldOf(t, svc, cfg)
				c := dial(w)
				c.send(c.digest("") + test.before)
				sink := svc.sink()
				received := len(c.end.unread())
				time.Sleep(time.Hour)
				if n := len(c.end.unread()); n != received || svc.count() > 0 {
					t.Fatalf("%d bytes came and %d requests were decoded", n-received, svc.count())
				}
				sink.Leader("n2:1")
				sink.Flush()
				c.expect("Ln2:1\n")
				c.send(test.then)
				c.expect(released("a", 1) + released("b", 2))
				if read, write := c.end.peer.deadlines(); !read.IsZero() || !write.IsZero() {
					t.Errorf("deadlines are left over: read %v, write %v", read, write)
				}
			})
		})
	}
}

// More than is read before the frame is none the less decoded after it.
func TestMuchIsAskedBeforeTheReadyFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		svc := answering()
		svc.unready = true
		w := newWorldOf(t, svc, Config{})
		c := w.dial()
		c.challenge()
		c.send(c.digest("") + strings.Repeat(release("a", 1), n))
		sink := svc.sink()
		if left := len(c.end.peer.unread()); left == 0 {
			t.Error("all of it was read")
		}
		sink.Leader("n2:1")
		sink.Flush()
		c.expect("Ln2:1\n" + strings.Repeat(released("a", 1), n))
	})
}

// A connection that ends before its ready frame is noticed, and nothing it asked is
// decoded.
func TestAConnectionThatEndsBeforeItsReadyFrame(t *testing.T) {
	for _, test := range []struct {
		name   string
		end    func(w *world, c *client)
		reason CloseReason
	}{
		{"the client closes", func(_ *world, c *client) { c.end.Close() }, ClosedByClient},
		{"the client half-closes", func(_ *world, c *client) { c.finish() }, ClosedByClient},
		{"the client resets", func(_ *world, c *client) { c.end.Reset() }, ClosedReset},
		{"the server stops", func(w *world, _ *client) { w.shutdown(time.Minute) }, ClosedDrain},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := answering()
				svc.unready = true
				w := newWorldOf(t, svc, Config{})
				c := w.dial()
				c.challenge()
				c.send(c.digest("") + release("a", 1))
				sink := svc.sink()
				test.end(w, c)
				time.Sleep(time.Minute)
				w.seen.expect(t, map[CloseReason]int{test.reason: 1})
				if svc.count() > 0 || len(svc.left) != 1 {
					t.Errorf("%d requests were decoded, %d sessions left", svc.count(), len(svc.left))
				}
				sink.Leader("n2:1") // too late
				sink.Flush()
				synctest.Wait()
			})
		})
	}
}

// L stands in one order with the answers, and a session ends behind all of them.
func TestTheOrderOfLAndAnswers(t *testing.T) {
	for _, test := range []struct {
		name   string
		reason service.EndReason
		last   string
		closed CloseReason
	}{
		{"another node leads", service.EndMoved, "Mn2:1\n", ClosedMoved},
		{"no leader is known", service.EndNoLeader, "Eno_leader\n", ClosedNoLeader},
		{"it can't serve", service.EndNotActive, "Enot_active\n", ClosedNotActive},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEither(t, func(t *testing.T, cfg Config, dial func(w *world) *client) {
				svc := &scripted{leader: "n1:1"}
				w := newWorldOf(t, svc, cfg)
				c := dial(w)
				c.send(c.digest(""))
				c.expect("Ln1:1\n")
				sink := svc.sink()
				want := ""
				for i := range uint64(100) { // more than a write takes
					sink.Deliver(service.Answer{Outcome: service.Granted, Key: "k", Token: i, Owner: i})
					sink.Leader("n2:1")
					sink.Deliver(service.Answer{Outcome: service.Busy, Key: "k", Owner: i})
					want += granted("k", i, i) + "Ln2:1\n" + busy("k", i)
				}
				sink.End(test.reason, "n2:1")
				sink.End(service.EndNotActive, "") // the first stands
				sink.Flush()
				c.expect(want + test.last)
				c.expectEnd()
				c.end.Close()
				synctest.Wait()
				w.seen.expect(t, map[CloseReason]int{test.closed: 1})
			})
		})
	}
}

// The longest address there may be fits into a frame, and many into a write.
func TestTheLongestAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr := strings.Repeat("x", wire.MaxAddr-5) + ":5225"
		svc := &scripted{leader: addr}
		w := newWorldOf(t, svc, Config{})
		c := w.dial()
		c.challenge()
		c.send(c.digest(""))
		c.expect("L" + addr + "\n")
		sink := svc.sink()
		for range wire.MaxWriteBatch {
			sink.Leader(addr)
		}
		sink.Flush()
		c.expect(strings.Repeat("L"+addr+"\n", wire.MaxWriteBatch))
	})
}

// cluster is a Proposer of a cluster: entries are applied when the test says so, from
// another goroutine than the service's.
type cluster struct {
	mu       sync.Mutex
	local    *local.Proposer
	underWay *lock.Entry
}

func (p *cluster) Propose(e *lock.Entry) (*lock.Outcome, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay = &lock.Entry{Elapsed: e.Elapsed, Commands: slices.Clone(e.Commands)}
	return nil, false
}

func (p *cluster) Current(key string, at time.Duration) (lock.Grant, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.local.Current(key, at)
}

func (p *cluster) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.local.Len()
}

func (p *cluster) NextDeadline() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.local.NextDeadline()
}

// apply applies the entry that is under way, if one is.
func (p *cluster) apply() *lock.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.underWay == nil {
		return nil
	}
	out, _ := p.local.Propose(p.underWay)
	p.underWay = nil
	return out
}

// commit applies entries until none is under way.
func (p *cluster) commit(svc *service.Service) {
	for out := p.apply(); out != nil; out = p.apply() {
		svc.Applied(out)
		svc.Next()
		synctest.Wait()
	}
}

// newClusterWorld returns a node of a cluster that knows no leader.
func newClusterWorld(t *testing.T) (*world, *cluster) {
	p := &cluster{local: local.New(1)}
	svc := service.New(p, service.Config{Limits: service.DefaultLimits(), Clustered: true})
	t.Cleanup(svc.Close)
	w := newWorldOf(t, svc, Config{})
	w.service = svc
	return w, p
}

// A whole life: a client comes before there is a leader, is served, and is sent to the
// next leader. One with nothing unanswered stays.
func TestAClientOverAChangeOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newClusterWorld(t)
		idle, busyOne := w.dial(), w.dial()
		for _, c := range []*client{idle, busyOne} {
			c.challenge()
			c.send(c.digest(""))
		}
		busyOne.send(acquire("k", 0, 100, 1))
		synctest.Wait()
		idle.expectNothing()
		busyOne.expectNothing()
		w.service.Elected()
		w.service.Lead("n1:1")
		idle.expect("Ln1:1\n")
		busyOne.expect("Ln1:1\n")
		synctest.Wait()
		p.commit(w.service)
		busyOne.expect(granted("k", 1, 1))

		idle.send(acquire("k", 100, 100, 2)) // waits
		busyOne.send(release("other", 1))    // is proposed
		synctest.Wait()
		w.service.Follow("n2:1")
		idle.expect(busy("k", 2) + "Ln2:1\n")
		busyOne.expect("Mn2:1\n")
		busyOne.expectEnd()

		idle.send(acquire("k", 100, 100, 3))
		idle.expect("Mn2:1\n")
		idle.expectEnd()
		idle.end.Close()
		busyOne.end.Close()
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedMoved: 2})
	})
}

// A burst of refusals is no slowness: a connection with 1,500 waiters lives on when the
// leader steps down, and hears of the next leader behind them.
func TestAConnectionWithManyWaitersLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 1500
		w, p := newClusterWorld(t)
		w.service.Lead("n1:1")
		holder, c := w.dial(), w.dial()
		for _, c := range []*client{holder, c} {
			c.challenge()
			c.send(c.digest(""))
			c.expect("Ln1:1\n")
		}
		holder.send(acquire("k", 0, 100, 0))
		synctest.Wait()
		p.commit(w.service)
		requests, size := "", 0
		for i := range uint64(waiters) {
			requests += acquire("k", 100, 100, i)
			size += len(busy("k", i))
		}
		c.send(requests)
		synctest.Wait()
		w.service.Follow("n2:1")
		answers := replies(t, c.read(size+len("Ln2:1\n")))
		for i, a := range answers {
			if want := wire.OpBusy; i < waiters && a.Op != want {
				t.Fatalf("the answer in place %d is %v, want %v", i, a.Op, want)
			}
		}
		if last := answers[len(answers)-1]; len(answers) != waiters+1 || last.Op != wire.OpLeader {
			t.Fatalf("%d words, the last %v, want the leader behind all answers", len(answers), last.Op)
		}
		w.service.Lead("n1:1")
		c.expect("Ln1:1\n")
		c.send(release("k", 0))
		c.expect(notCurrent("k", 0))
	})
}

// A node that drains tells no_active only to those with something unanswered, and
// names the new leader to the others when it knows one.
func TestANodeOfAClusterDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newClusterWorld(t)
		w.service.Lead("n1:1")
		idle, waits, unanswered := w.dial(), w.dial(), w.dial()
		for _, c := range []*client{idle, waits, unanswered} {
			c.challenge()
			c.send(c.digest(""))
			c.expect("Ln1:1\n")
		}
		unanswered.send(acquire("k", 0, 100, 1))
		synctest.Wait()
		waits.send(acquire("k", 100, 100, 2))
		synctest.Wait()
		w.server.StopAccepting()
		w.service.Drain()
		waits.expect(busy("k", 2))
		w.service.Retire()
		w.service.Follow("n2:1")
		go w.shutdown(time.Minute)
		unanswered.expect("Enot_active\n")
		idle.expect("Ln2:1\n")
		waits.expect("Ln2:1\n")
		for _, c := range []*client{idle, waits, unanswered} {
			c.expectEnd()
			c.end.Close()
		}
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedNotActive: 1, ClosedDrain: 2})
	})
}

// Answers to probes that a grant under way holds back count among those that wait: the
// connection is not read while they are too many.
func TestHeldProbesStopTheReading(t *testing.T) {
	for name, decide := range map[string]func(w *world, p *cluster){
		"the grant is made":         func(w *world, p *cluster) { p.commit(w.service) },
		"the node steps down":       func(w *world, _ *cluster) { w.service.Follow("n2:1") },
		"the connection is cut off": func(w *world, _ *cluster) { w.shutdown(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const probes = 3000
				w, p := newClusterWorld(t)
				w.service.Lead("n1:1")
				c := w.dial()
				c.challenge()
				c.send(c.digest(""))
				c.expect("Ln1:1\n")
				c.send(acquire("k", 0, 100, 1))
				synctest.Wait()
				c.send(strings.Repeat(release("k", 0), probes))
				time.Sleep(time.Minute)
				c.expectNothing()
				asked := probes - (len(c.end.peer.unread())+wire.ReadBuffer)/len(release("k", 0))
				if asked > wire.MaxPendingReplies {
					t.Errorf("at least %d probes were read, want %d at most", asked, wire.MaxPendingReplies)
				}
				decide(w, p)
				switch name {
				case "the grant is made":
					c.expect(granted("k", 1, 1) + strings.Repeat(notCurrent("k", 0), probes))
				case "the node steps down":
					c.expect("Mn2:1\n")
					c.expectEnd()
				}
				c.end.Close()
			})
		})
	}
}

// Who holds a grant is the client token's name and where the connection comes from, in
// 64 bytes of whole characters.
func TestHolder(t *testing.T) {
	remote := &net.TCPAddr{IP: net.IPv6loopback, Port: 4711}
	for _, test := range []struct{ client, want string }{
		{"", "[::1]:4711"},
		{"shop", "shop @ [::1]:4711"},
		{"sh\xffp", "sh?p @ [::1]:4711"},
		{strings.Repeat("x", 60), strings.Repeat("x", 60) + " @ ["},
		{strings.Repeat("x", 61), strings.Repeat("x", 61) + " @ "},
		{strings.Repeat("ü", 31) + "x", strings.Repeat("ü", 31) + "x "},
		{"x" + strings.Repeat("ü", 40), "x" + strings.Repeat("ü", 31)},
		{strings.Repeat("世", 40), strings.Repeat("世", 21)},
	} {
		got := holder(test.client, remote)
		if got != test.want || len(got) > lock.MaxHolder || !utf8.ValidString(got) {
			t.Errorf("client %q: held by %q, want %q", test.client, got, test.want)
		}
	}
}

func TestTheServiceIsToldTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{Tokens: tokensOf("s3cret")})
		w.dial().authenticate("s3cret")
		if want := "token-s3cret @ mem"; svc.holder != want {
			t.Errorf("held by %q, want %q", svc.holder, want)
		}
	})
}
