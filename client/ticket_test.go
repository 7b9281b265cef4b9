package client

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Tickets: docs/CLIENT.md, section 3.

// ticket takes key on the session for blocking acquires.
func (l *lab) ticket(b *Broker, block *peer, key string, lease time.Duration, token uint64) *Ticket {
	l.Helper()
	a := l.acquireFor(b, key, 9*time.Second, lease, 0)
	block.send(grant(block.acquire(key), token))
	return a.granted()
}

func TestTheLeaseIsCountedFromBeforeTheFrameWasHandedToTheSocket(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		block.c.in.setRoom(0) // the write begins now and ends in half a second
		a := l.acquireFor(b, "k", 9*time.Second, 10*time.Second, 0)
		l.sleep(500 * time.Millisecond)
		block.c.in.setRoom(1000)
		r := block.acquire("k")
		l.sleep(250 * time.Millisecond)
		block.send(grant(r, 7))
		ticket := a.granted()
		if left := ticket.Remaining(); left != 9250*time.Millisecond {
			l.Fatalf("%s left, want 9.25s", left)
		}
		l.sleep(time.Second)
		if left := ticket.Remaining(); left != 8250*time.Millisecond {
			l.Fatalf("%s left, want 8.25s", left)
		}
	})
}

func TestAProbeIsSentASecondOnASessionWhereAcquiresWaitOneAtATime(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		kept.probes, block.probes = true, true
		l.acquire(b, "k", 200*time.Second)
		l.acquire(b, "k2", 200*time.Second)
		began := time.Now()
		block.acquire("k")
		block.acquire("k2")
		r := block.release("k", 0)
		within(l, "the first probe", time.Since(began), time.Second, time.Second)
		l.sleep(10 * time.Second)
		block.quiet() // the first one is not answered yet
		block.send(answer(wire.OpNotCurrent, r))
		asked := time.Now()
		block.release("k", 0)
		within(l, "the next probe", time.Since(asked), 0, time.Second)
		block.send(answer(wire.OpNotCurrent, r))
		asked = time.Now()
		block.release("k", 0)
		within(l, "the next probe", time.Since(asked), time.Second, time.Second)
		kept.quiet()
	})
}

func TestAProbeAnsweredBeforeTheGrantMovesTheLeasesStart(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		block.probes = true
		a := l.acquireFor(b, "k", 60*time.Second, 10*time.Second, 8*time.Second)
		r := block.acquire("k")
		var probe wire.Request
		for range 20 {
			probe = block.release("k", 0)
			l.sleep(100 * time.Millisecond)
			block.send(answer(wire.OpNotCurrent, probe))
		}
		l.sleep(400 * time.Millisecond)
		block.send(grant(r, 7))
		// Twenty seconds in the queue, and the whole lease but what has passed since
		// the last probe was sent.
		if left := a.granted().Remaining(); left != 9500*time.Millisecond {
			l.Fatalf("%s left, want 9.5s", left)
		}
	})
}

func TestAProbeAnsweredAfterTheGrantMovesNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		block.probes = true
		a := l.acquireFor(b, "k", 60*time.Second, 10*time.Second, 0)
		r := block.acquire("k")
		probe := block.release("k", 0)
		l.sleep(500 * time.Millisecond)
		block.send(grant(r, 7), answer(wire.OpNotCurrent, probe))
		if left := a.granted().Remaining(); left != 8500*time.Millisecond {
			l.Fatalf("%s left, want 8.5s", left)
		}
	})
}

func TestAProbeCountsOnItsOwnSessionOnly(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, _, block := l.open()
		l.fill(b, "a", 16)
		a := l.acquireFor(b, "k", 60*time.Second, 10*time.Second, 0)
		extra := n.session(single)
		r := extra.acquire("k")
		l.sleep(1500 * time.Millisecond)
		block.send(wire.Reply{Op: wire.OpNotCurrent, Text: "a-0"})
		synctest.Wait()
		extra.send(grant(r, 7))
		if left := a.granted().Remaining(); left != 8500*time.Millisecond {
			l.Fatalf("%s left, want 8.5s", left)
		}
	})
}

func TestAServerThatAnswersAProbeWithAnythingButNIsNotProbedAgain(t *testing.T) {
	answers := map[string]func(p *peer){
		"R":             func(p *peer) { p.raw("R" + string(make([]byte, 8)) + "k\n") },
		"E bad_request": func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "bad_request"}) },
		"garbage":       func(p *peer) { p.raw("?\n") },
	}
	for name, reply := range answers {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				b, n, _, block := l.open()
				block.probes = true
				a := l.acquire(b, "k", 60*time.Second)
				block.acquire("k")
				block.release("k", 0)
				reply(block)
				a.fails("indeterminate", "protocol violation")
				next := n.session(single)
				next.probes = true
				l.acquire(b, "k", 60*time.Second)
				next.acquire("k")
				l.sleep(30 * time.Second)
				next.quiet()
			})
		})
	}
}

// A server that stops is not one that can't be probed.
func TestAServerThatEndsTheSessionForItsOwnReasonsIsProbedAgain(t *testing.T) {
	for _, reason := range []string{"not_active", "no_leader"} {
		inLab(t, func(l *lab) {
			b, n, _, block := l.open()
			block.probes = true
			l.acquire(b, "k", 60*time.Second)
			block.acquire("k")
			block.release("k", 0)
			block.send(wire.Reply{Op: wire.OpError, Text: reason})
			next := n.session(single)
			next.probes = true
			l.acquire(b, "k", 60*time.Second)
			next.acquire("k")
			next.release("k", 0)
		})
	}
}

func TestProbesNeedNoPlaceAmongThePending(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open(func(c *Config) { c.MaxPending = 1 })
		block.probes = true
		l.acquire(b, "k", 60*time.Second)
		for i := range 200 {
			l.release(b, "x", uint64(i+1)) // every release's place is taken
		}
		block.acquire("k")
		block.release("k", 0)
	})
}

// Sleep: the clocks part, as on a machine that was suspended.

func (l *lab) openWithSleep() (b *Broker, block *peer, sleep func(time.Duration)) {
	l.Helper()
	n := l.node(here)
	cfg, err := Config{Addrs: []string{here}, Dial: l.dial}, error(nil)
	if b, err = newBroker(cfg); err != nil {
		l.Fatal(err)
	}
	began, slept := time.Now(), time.Duration(0)
	b.clock.awake = func() time.Duration {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Hour + time.Since(began) + slept
	}
	b.start()
	l.atEnd(func() { b.Close() })
	n.session(single)
	return b, n.session(single), func(d time.Duration) {
		l.mu.Lock()
		slept += d
		l.mu.Unlock()
	}
}

func TestRemainingCountsWhileTheMachineSleeps(t *testing.T) {
	inLab(t, func(l *lab) {
		b, block, sleep := l.openWithSleep()
		ticket := l.ticket(b, block, "k", 10*time.Second, 7)
		sleep(4 * time.Second)
		l.sleep(time.Second)
		if left := ticket.Remaining(); left != 5*time.Second {
			l.Fatalf("%s left, want 5s", left)
		}
		sleep(time.Minute)
		if left := ticket.Remaining(); left != 0 {
			l.Fatalf("%s left, want 0", left)
		}
	})
}

func TestASleepThroughTheLeasesEndIsNoticedWithinASecondOfWaking(t *testing.T) {
	inLab(t, func(l *lab) {
		b, block, sleep := l.openWithSleep()
		ticket := l.ticket(b, block, "k", 10*time.Second, 7)
		ctx := ticket.Context()
		l.sleep(1500 * time.Millisecond)
		sleep(time.Minute)
		woke := time.Now()
		<-ticket.Expired()
		within(l, "noticing", time.Since(woke), 0, time.Second)
		wantKinds(l, ctx.Err(), "context canceled")
		wantKinds(l, context.Cause(ctx), "not current")
	})
}

func TestAGrantThatCameWhileTheMachineSleptIsCountedFromBeforeTheSleep(t *testing.T) {
	inLab(t, func(l *lab) {
		b, block, sleep := l.openWithSleep()
		a := l.acquireFor(b, "k", 9*time.Second, 10*time.Second, time.Second)
		r := block.acquire("k")
		sleep(9500 * time.Millisecond)
		block.send(grant(r, 7))
		a.fails("insufficient lease")
	})
}

func TestWithoutASleeplessClockTheMonotonicOneDecides(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		b.clock.awake = func() time.Duration { return 0 }
		ticket := l.ticket(b, block, "k", 10*time.Second, 7)
		l.sleep(4 * time.Second)
		if left := ticket.Remaining(); left != 6*time.Second {
			l.Fatalf("%s left, want 6s", left)
		}
	})
}

func TestTheSystemsSleeplessClockGoesOn(t *testing.T) {
	c := newClock()
	first := c.now()
	for began := time.Now(); time.Since(began) < 2*time.Millisecond; {
	}
	if got := c.now().since(first); got < 2*time.Millisecond {
		t.Fatalf("%s have passed, want at least 2ms", got)
	}
}

// What is handed out.

func TestExpiryCanBeWaitedForAsAChannelAndAsAContext(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		ticket := l.ticket(b, block, "k", 10*time.Second, 7)
		began := time.Now()
		ctx := ticket.Context()
		if at, ok := ctx.Deadline(); !ok || !at.Equal(began.Add(10*time.Second)) {
			l.Fatalf("the context's deadline is %v", at)
		}
		<-ticket.Expired()
		within(l, "expiry", time.Since(began), 10*time.Second, 10*time.Second)
		wantKinds(l, ctx.Err(), "context deadline")
		wantKinds(l, context.Cause(ctx), "not current")
		if left := ticket.Remaining(); left != 0 {
			l.Fatalf("%s left after expiry", left)
		}
		l.sleep(time.Second)
		if s := b.Stats(); s.Held != 0 {
			l.Fatalf("%d tickets are kept after their end", s.Held)
		}
		late := l.ticket(b, block, "late", time.Second, 8)
		l.sleep(5 * time.Second)
		<-late.Expired()
		wantKinds(l, context.Cause(late.Context()), "not current")
	})
}

// Whoever asks for the context may be stopped after each reading of a clock, before
// there is a timer: the lease goes on meanwhile.
func TestHoweverLongItTookToAskForItExpiryIsNotLate(t *testing.T) {
	const readings = 4 // at least as many as Context makes
	for n := range readings {
		for _, stop := range []time.Duration{1500 * time.Millisecond, 3 * time.Second} {
			inLab(t, func(l *lab) {
				b, _, _, block := l.open()
				ticket := l.ticket(b, block, "k", 2*time.Second, 7)
				granted := time.Now()
				l.stopAfter(n+1, stop)
				ctx := ticket.Context()
				asked := time.Since(granted)
				if at, ok := ctx.Deadline(); !ok || at.After(granted.Add(2*time.Second)) {
					l.Errorf("stopped for %s after reading %d: the deadline is %s after the grant of 2 s", stop, n+1, at.Sub(granted))
				}
				<-ctx.Done()
				within(l, "expiry", time.Since(granted), 0, max(asked, 2*time.Second))
				wantKinds(l, context.Cause(ctx), "not current")
			})
		}
	}
}

// A timer may be late, whatever it was made for: here by the clock that it goes by.
func TestWhatIsHandedOutIsCheckedAgainstTheClocksEachSecond(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		ticket := l.ticket(b, block, "k", 10*time.Second, 7)
		granted := time.Now()
		b.mu.Lock()
		ticket.expireAt(granted.Add(time.Minute))
		b.unlock()
		<-ticket.Expired()
		within(l, "expiry", time.Since(granted), 10*time.Second, 11*time.Second)
		wantKinds(l, context.Cause(ticket.Context()), "not current")
	})
}

func TestATicketWhoseLeaseHasEndedIsKeptNowhere(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		for i := range 100 {
			ticket := l.ticket(b, block, fmt.Sprint("k", i), time.Duration(1+i%3)*time.Second, uint64(i+1))
			switch i % 4 {
			case 0:
				ticket.Context()
			case 1:
				ticket.Expired()
			case 2:
				// Asked for at the lease's end, when the watch may not have looked yet.
				time.AfterFunc(ticket.length(), func() { ticket.Context() })
			}
		}
		l.sleep(5 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		defer b.unlock()
		if b.heldCount != 0 || len(b.watched) != 0 {
			l.Fatalf("after the leases' end %d tickets are held, and %d watched", b.heldCount, len(b.watched))
		}
	})
}

func TestTheTicketEndsForItsHolderWhenReleaseIsCalled(t *testing.T) {
	ways := map[string]func(*Ticket){
		"release": func(t *Ticket) { t.Release(context.Background()) },
		"close":   func(t *Ticket) { t.Close() },
		"detach":  func(t *Ticket) { t.Detach() },
		"broker":  func(t *Ticket) { t.b.Close() },
	}
	for name, way := range ways {
		for _, asked := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				inLab(t, func(l *lab) {
					b, _, _, block := l.open()
					ticket := l.ticket(b, block, "k", 60*time.Second, 7)
					if asked {
						ticket.Context()
					}
					go way(ticket)
					synctest.Wait()
					select {
					case <-ticket.Expired():
					default:
						l.Fatal("the ticket goes on")
					}
					wantKinds(l, context.Cause(ticket.Context()), "not current")
					if ticket.Remaining() != 0 {
						l.Fatal("time remains")
					}
				})
			})
		}
	}
}

func TestATicketIsReleasedWithItsExactTokenAndOnlyOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		ticket := l.ticket(b, block, "k", 60*time.Second, 7)
		a := l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		wantKinds(l, a.wait().err)
		wantKinds(l, ticket.Release(l.Context()))
		wantKinds(l, ticket.Close())
		kept.quiet()
	})
}

func TestAReleaseAfterTheLeaseIsNotCurrentAndCloseDoesNotMind(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		ticket := l.ticket(b, block, "k", time.Second, 7)
		l.sleep(2 * time.Second)
		a := l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		kept.send(answer(wire.OpNotCurrent, kept.release("k", 7)))
		a.fails("not current")
		wantKinds(l, ticket.Release(l.Context()), "not current")
		wantKinds(l, ticket.Close())
		kept.quiet()
	})
}

func TestNoReplyToAReleaseIsNeverSuccessAndItMayBeCalledAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		ticket := l.ticket(b, block, "k", 60*time.Second, 7)
		a := l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		a.fails("indeterminate")
		kept.c.Close()
		a = l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		block.send(answer(wire.OpRelease, block.release("k", 7)))
		wantKinds(l, a.wait().err)
	})
}

func TestCloseOfATicketIsABoundedBestEffort(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		ticket := l.ticket(b, block, "k", 60*time.Second, 7)
		a := l.begin(func(_ context.Context, a *attempt) { a.err = ticket.Close() })
		a.fails("indeterminate")
		a.after(5 * time.Second)
	})
}

func TestADetachedTicketIsNeverReleasedByItsBroker(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		ticket := l.ticket(b, block, "k", 60*time.Second, 7)
		if key, token := ticket.Detach(); key != "k" || token != 7 {
			l.Fatalf("detached %q %d", key, token)
		}
		wantKinds(l, ticket.Release(l.Context()), "closed")
		wantKinds(l, ticket.Close())
		wantKinds(l, b.Close())
		kept.quiet()
		block.quiet()
	})
}

func TestAnotherProcessReleasesADetachedTicket(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		key, token := l.ticket(b, block, "k", 60*time.Second, 7).Detach()
		n2 := l.node("other:1")
		b2 := l.broker(func(c *Config) { c.Addrs = []string{"other:1"} })
		kept := n2.session(single)
		a := l.release(b2, key, token)
		kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		wantKinds(l, a.wait().err)
	})
}

func TestTheDomainIsAClusterWhenTheSessionHasSeenAnL(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		n.session(leads)
		block := n.session(leads)
		if d := l.ticket(b, block, "k", 10*time.Second, 7).Domain(); d != DomainCluster || d.String() != "cluster" {
			l.Fatalf("domain %s", d)
		}
	})
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		if d := l.ticket(b, block, "k", 10*time.Second, 7).Domain(); d != DomainSingleProcess || d.String() != "single process" {
			l.Fatalf("domain %s", d)
		}
		block.send(leads)
		synctest.Wait()
		if d := l.ticket(b, block, "k2", 10*time.Second, 8).Domain(); d != DomainCluster {
			l.Fatalf("domain %s after an L", d)
		}
	})
}
