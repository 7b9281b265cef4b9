package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Sessions and the leader: docs/CLIENT.md, section 4.

func names(addr string) wire.Reply { return wire.Reply{Op: wire.OpLeader, Text: addr} }

// cluster makes three nodes a:1, b:1, c:1, of which a leads, and a broker with both
// sessions of each open.
func (l *lab) cluster(change ...func(*Config)) (b *Broker, nodes map[string]*fakeNode, peers map[string][]*peer) {
	l.Helper()
	addrs := []string{"a:1", "b:1", "c:1"}
	nodes, peers = map[string]*fakeNode{}, map[string][]*peer{}
	for _, addr := range addrs {
		nodes[addr] = l.node(addr)
	}
	b = l.broker(append([]func(*Config){func(c *Config) { c.Addrs = addrs }}, change...)...)
	for _, addr := range addrs {
		for range 2 {
			peers[addr] = append(peers[addr], nodes[addr].session(names("a:1")))
		}
	}
	return b, nodes, peers
}

func TestOneAddressHasTwoSessions(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, _, _ := l.open()
		l.sleep(time.Hour)
		if s := b.Stats(); n.dialled() != 2 || s.Serving != 2 {
			l.Fatalf("dialled %d, %d serve; want 2, 2", n.dialled(), s.Serving)
		}
	})
}

func TestASessionServesOnceItGotTheReadyFrame(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		p := n.accept()
		p.challenge("")
		a := l.acquire(b, "k", 9*time.Second)
		synctest.Wait()
		p.quiet()
		p.send(single)
		l.sleep(time.Second)
		p.acquire("k")
		a.pending()
	})
}

func TestWithSeveralAddressesAnEmptyReadyFrameIsAConfigurationFaultAndNeverServes(t *testing.T) {
	inLab(t, func(l *lab) {
		n1 := l.node("a:1")
		n2 := l.node("b:1")
		b := l.broker(func(c *Config) { c.Addrs = []string{"a:1", "b:1"} })
		p := n1.session(single)
		n2.session(single)
		p.wantClosed(true)
		ctx, cancel := context.WithTimeout(l.Context(), time.Second)
		defer cancel()
		err := b.WaitReady(ctx)
		wantKinds(l, err, "not connected", "context deadline")
		wantText(l, err, "a:1", "single server", "not one lock")
		// It is looked at again with the longest backoff.
		dialled := time.Now()
		for n1.dialled() < 3 {
			l.sleep(time.Millisecond)
		}
		within(l, "the next dial", time.Since(dialled)+time.Second, backoffLongest-10*time.Millisecond, backoffLongest+10*time.Millisecond)
	})
}

func TestALThatNamesAnotherNodeIsAHintAndTheSessionStaysWarm(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, peers := l.cluster()
		a := l.acquire(b, "k", 9*time.Second)
		peers["a:1"][1].acquire("k")
		l.sleep(time.Hour / 60)
		for _, addr := range []string{"b:1", "c:1"} {
			for _, p := range peers[addr] {
				p.quiet()
				p.wantClosed(false)
			}
		}
		if s := b.Stats(); s.Sessions < 5 || s.Serving > 2 {
			l.Fatalf("%+v", s)
		}
		a.wait()
	})
}

func TestOnlyAnLOnTheSessionItselfThatNamesItsOwnNodeMakesItServe(t *testing.T) {
	inLab(t, func(l *lab) {
		n1, n2 := l.node("a:1"), l.node("b:1")
		b := l.broker(func(c *Config) { c.Addrs = []string{"a:1", "b:1"} })
		p1 := n1.session(names("b:1"))
		p2 := n2.session(names("a:1"))
		a := l.acquire(b, "k", 9*time.Second)
		l.sleep(time.Second)
		p1.quiet()
		p2.quiet()
		p2.send(names("b:1"))
		synctest.Wait()
		p2.acquire("k")
		p1.quiet()
		a.pending()
	})
}

func TestAnAddressInAHintThatWasNotConfiguredIsDialledAsWell(t *testing.T) {
	for _, hint := range []wire.Reply{names("new:1"), {Op: wire.OpMoved, Text: "new:1"}} {
		inLab(t, func(l *lab) {
			n, learned := l.node(here), l.node("new:1")
			b := l.broker()
			n.session(hint)
			p := learned.session(names("new:1"))
			l.acquire(b, "k", 9*time.Second)
			p2 := learned.session(names("new:1"))
			p2.acquire("k")
			p.quiet()
		})
	}
}

func TestAnMOnAServingSessionIsAHintAsWell(t *testing.T) {
	inLab(t, func(l *lab) {
		_, _, _, block := l.open()
		learned := l.node("new:1")
		block.send(wire.Reply{Op: wire.OpMoved, Text: "new:1"})
		learned.session(names("new:1"))
	})
}

func TestAHintThatIsNoAddressIsIgnored(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		p := n.session(names("no address"))
		p.send(names("another"), names(":1"), names("x:99999"))
		synctest.Wait()
		p.wantClosed(false)
		if len(b.nodes) != 1 {
			l.Fatalf("%d nodes", len(b.nodes))
		}
	})
}

func TestALyingServerCantHaveTheClientKeepMoreThanABoundOfNodes(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		p := n.session(single)
		for i := range 1000 {
			p.send(names("10.0.0." + string(rune('0'+i%10)) + ":" + string(rune('1'+i/10%9)) + string(rune('0'+i/100))))
		}
		synctest.Wait()
		b.mu.Lock()
		got := len(b.nodes)
		b.unlock()
		if got > maxNodes {
			l.Fatalf("%d nodes, want at most %d", got, maxNodes)
		}
		l.sleep(time.Minute)
		b.mu.Lock()
		got = len(b.nodes)
		b.unlock()
		if got != 1 {
			l.Fatalf("%d nodes after they all turned out dead, want 1", got)
		}
	})
}

func TestWhenALOnAServingSessionNamesAnotherNodeItGetsASecondToAnswer(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, peers := l.cluster()
		answered := l.acquire(b, "answered", 9*time.Second)
		lost := l.acquire(b, "lost", 9*time.Second)
		old := peers["a:1"][1]
		r := old.acquire("answered")
		old.acquire("lost")
		old.send(names("b:1"))
		synctest.Wait()
		peers["a:1"][0].wantClosed(true) // nothing is under way on it
		moved := l.acquire(b, "new", 9*time.Second)
		l.sleep(500 * time.Millisecond)
		old.quiet()
		old.send(grant(r, 7))
		answered.granted()
		lost.pending()
		old.wantClosed(false)
		lost.fails("indeterminate")
		lost.after(time.Second)
		old.wantClosed(true)
		// The other node serves only when it says so itself.
		moved.pending()
		next := peers["b:1"][1]
		next.quiet()
		peers["b:1"][0].send(names("b:1"))
		synctest.Wait()
		next.send(names("b:1"))
		synctest.Wait()
		next.acquire("new")
	})
}

func TestWhenASessionToAnotherNodeBeginsToServeTheEarlierOnesGetASecond(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, peers := l.cluster()
		a := l.acquire(b, "k", 9*time.Second)
		old := peers["a:1"][1]
		old.acquire("k")
		peers["b:1"][0].send(names("b:1"))
		synctest.Wait()
		peers["b:1"][1].send(names("b:1"))
		synctest.Wait()
		l.acquire(b, "next", 9*time.Second)
		peers["b:1"][1].acquire("next") // without a handshake
		old.quiet()
		a.fails("indeterminate")
		a.after(time.Second)
		old.wantClosed(true)
	})
}

func TestARetiringSessionIsClosedOnceEverythingIsAnswered(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, peers := l.cluster()
		a := l.acquire(b, "k", 9*time.Second)
		old := peers["a:1"][1]
		r := old.acquire("k")
		old.send(names("b:1"))
		l.sleep(100 * time.Millisecond)
		old.wantClosed(false)
		old.send(answer(wire.OpBusy, r))
		a.fails("busy")
		l.sleep(2 * minSweep)
		old.wantClosed(true)
	})
}

func TestTheUnsentOfARetiringSessionMoveOn(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, peers := l.cluster()
		old := peers["a:1"][1]
		old.c.in.setRoom(10)
		l.acquire(b, "sent", 9*time.Second)
		l.acquire(b, "unsent", 9*time.Second)
		for _, p := range peers["b:1"] {
			p.send(names("b:1"))
			synctest.Wait()
		}
		peers["b:1"][1].acquire("unsent")
	})
}

func TestOtherLsCloseNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, peers := l.cluster()
		a := l.acquire(b, "k", 9*time.Second)
		peers["a:1"][1].acquire("k")
		for _, addr := range []string{"b:1", "c:1"} {
			for _, p := range peers[addr] {
				p.send(names("a:1"), names("elsewhere:1"), names("a:1"))
			}
		}
		peers["a:1"][1].send(names("a:1"))
		a.pending()
		peers["a:1"][0].wantClosed(false)
		peers["a:1"][1].wantClosed(false)
	})
}

func TestAfterAuthFailedItTriesAgainWithTheLongestBackoff(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.auto = refuseAll
		b := l.broker()
		l.sleep(time.Second)
		if n.dialled() != 2 {
			l.Fatalf("dialled %d times in a second, want 2", n.dialled())
		}
		l.sleep(backoffLongest)
		if n.dialled() != 4 {
			l.Fatalf("dialled %d times, want 4", n.dialled())
		}
		// Tokens may be rotated on the server.
		n.set(func(n *fakeNode) { n.auto = simple(single) })
		if err := b.WaitReady(l.Context()); err == nil {
			l.Fatal("it is ready too early")
		}
		l.sleep(backoffLongest)
		wantKinds(l, b.WaitReady(l.Context()))
	})
}

func TestWhileEverySessionIsRefusedAcquireAndWaitReadySaySoAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		l.node("a:1").auto = refuseAll
		l.node("b:1").auto = refuseAll
		b := l.broker(func(c *Config) { c.Addrs = []string{"a:1", "b:1"} })
		early := l.acquire(b, "k", 9*time.Second) // before it is known
		ready := l.begin(func(ctx context.Context, a *attempt) { a.err = b.WaitReady(ctx) })
		early.fails("authentication refused")
		early.after(wire.RefusalDelay)
		ready.fails("authentication refused")
		ready.after(wire.RefusalDelay)
		late := l.acquire(b, "k", 9*time.Second)
		late.fails("authentication refused")
		late.after(0)
	})
}

func TestConnectingGoesOnForEverWithBackoffFrom100msTo3200ms(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.refuse = true
		l.broker()
		l.sleep(10 * time.Minute)
		n.l.mu.Lock()
		defer n.l.mu.Unlock()
		// Two slots; the n-th dials of both lie between the least and the most.
		got := len(n.dials)
		if got < 2*int(10*time.Minute/backoffLongest) || got > 2*int(10*time.Minute/(backoffLongest/2))+20 {
			l.Fatalf("dialled %d times in ten minutes", got)
		}
	})
}

func TestTheBackoffDoublesWithJitterBetween100msAnd3200ms(t *testing.T) {
	for fails := range 100 {
		most := min(200*time.Millisecond<<min(fails, 8), 3200*time.Millisecond)
		seen := map[time.Duration]bool{}
		for range 50 {
			d := backoff(fails)
			within(t, "a pause", d, max(most/2, 100*time.Millisecond), most)
			seen[d] = true
		}
		if len(seen) < 2 {
			t.Fatal("no jitter")
		}
	}
}

func TestASessionThatTheClientClosedForACallIsDialledAgainAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, _, block := l.open()
		a := l.acquire(b, "k", 9*time.Second)
		block.acquire("k")
		a.cancel()
		a.wait()
		synctest.Wait()
		if n.dialled() != 3 {
			l.Fatalf("dialled %d times, want 3", n.dialled())
		}
	})
}

// A server that accepts and hangs up must not be dialled in a tight loop, whatever
// it says first.
func TestNoServerCanMakeTheClientDialInATightLoop(t *testing.T) {
	servers := map[string]func(p *peer){
		"hangs up":                       func(p *peer) { p.c.Close() },
		"hangs up after its ready frame": func(p *peer) { p.challengeAny(); p.send(single); p.c.Close() },
		"leads and then not":             func(p *peer) { p.challengeAny(); p.send(names(here), names("x:1")) },
		"M":                              func(p *peer) { p.challengeAny(); p.send(wire.Reply{Op: wire.OpMoved, Text: here}) },
		"no challenge":                   func(p *peer) { p.raw("HTTP/1.1 400 Bad Request\n") },
		"an endless line":                func(p *peer) { p.raw("SHA-256 " + string(make([]byte, 10000))) },
		"a probe's answer": func(p *peer) {
			p.challengeAny()
			p.send(single, wire.Reply{Op: wire.OpNotCurrent, Text: "k"})
			p.c.Close()
		},
		"E": func(p *peer) { p.challengeAny(); p.send(wire.Reply{Op: wire.OpError, Text: "no_leader"}) },
	}
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				n := l.node(here)
				n.auto = serve
				l.broker()
				l.sleep(10 * time.Second)
				most := 30 // two slots, whose pauses double
				if name == "leads and then not" {
					most = 220 // each of its sessions was a good one
				}
				if got := n.dialled(); got > most {
					l.Fatalf("dialled %d times in 10 s, want at most %d", got, most)
				}
			})
		})
	}
}

func TestAHandshakeHasTenSeconds(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		l.broker()
		p := n.accept()
		l.sleep(wire.HandshakeTimeout - time.Millisecond)
		p.wantClosed(false)
		l.sleep(2 * time.Millisecond)
		p.wantClosed(true)
	})
}

func TestTheReadyFrameMayBeHeldBackLongerThanTheHandshake(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		p := n.accept()
		p.challenge("")
		l.sleep(3 * wire.HandshakeTimeout)
		p.send(leads)
		wantKinds(l, b.WaitReady(l.Context()))
		l.sleep(time.Hour) // and no deadline is left on the session
		p.wantClosed(false)
	})
}

func TestAPeerThatTakesNoBytesIsGivenUpAfterTenSeconds(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		kept.c.in.setRoom(0)
		began := time.Now()
		l.release(b, "k", 7)
		for !kept.isClosed() {
			l.sleep(time.Millisecond)
		}
		within(l, "giving up", time.Since(began), 10*time.Second, 10*time.Second+10*time.Millisecond)
	})
}

func TestEmptyFramesAreIgnored(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		a := l.acquire(b, "k", 9*time.Second)
		r := block.acquire("k")
		block.raw("\n\n\n")
		block.send(single, grant(r, 7), single)
		a.granted()
		block.wantClosed(false)
	})
}

func TestWritesOfConcurrentCallersAreOneSystemCall(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		block.c.in.setRoom(0)
		l.fill(b, "first", 1)
		l.fill(b, "more", 15)
		h := block.c.in
		h.mu.Lock()
		before := h.writes
		h.mu.Unlock()
		h.setRoom(10000)
		if block.load() != 16 {
			l.Fatal("not all were written")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if got := h.writes - before; got != 1 {
			l.Fatalf("%d writes for 15 requests, want 1", got)
		}
	})
}

func TestRepliesAreUnderstoodHoweverTheyAreCut(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		a := l.acquire(b, "order-42", 9*time.Second)
		r := block.acquire("order-42")
		for _, c := range grant(r, 10).Append(nil) {
			block.raw(string([]byte{c}))
			l.sleep(time.Millisecond)
		}
		if a.granted().Token() != 10 {
			l.Fatal("wrong token")
		}
	})
}

func TestRepliesAreMatchedInWhateverOrderTheyCome(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		var attempts []*attempt
		var requests []wire.Request
		for range 10 {
			attempts = append(attempts, l.acquire(b, "same", 9*time.Second))
			requests = append(requests, block.acquire("same"))
		}
		for i := len(requests) - 1; i >= 0; i-- {
			block.send(grant(requests[i], uint64(100+i)))
		}
		for i, a := range attempts {
			if got := a.granted(); got.Token() != uint64(100+i) {
				l.Fatalf("call %d got token %d", i, got.Token())
			}
		}
	})
}

func TestTheNodeThatServesIsTold(t *testing.T) {
	inLab(t, func(l *lab) {
		var told []string
		b, _, peers := l.cluster(func(c *Config) {
			c.Events = func(e Event) {
				if e.Kind == EventLeader {
					told = append(told, e.Node)
				}
			}
		})
		peers["b:1"][0].send(names("b:1"))
		synctest.Wait()
		b.Close()
		if len(told) != 2 || told[0] != "a:1" || told[1] != "b:1" {
			l.Fatalf("told %v", told)
		}
	})
}
