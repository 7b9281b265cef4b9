package client

import (
	"context"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// The table of docs/CLIENT.md, section 2, "what happens", row by row.

func TestAGrantInTimeWithEnoughLeftIsATicket(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquire(b, "order-42", 5*time.Second)
		r := block.acquire("order-42")
		if want := (wire.Request{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: r.Owner, Key: "order-42"}); r != want {
			l.Fatalf("sent %+v, want %+v", r, want)
		}
		block.send(grant(r, 10)) // whose last byte is a newline's
		ticket := a.granted()
		if ticket.Key() != "order-42" || ticket.Token() != 10 || ticket.Owner() != r.Owner || ticket.Domain() != DomainSingleProcess {
			l.Fatalf("ticket %q %d %d %s", ticket.Key(), ticket.Token(), ticket.Owner(), ticket.Domain())
		}
		rel := l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		kept.send(answer(wire.OpRelease, kept.release("order-42", 10)))
		wantKinds(t, rel.wait().err)
	})
}

func TestADeadlineWhileStillUnsentIsATimeoutThatSaysWhy(t *testing.T) {
	t.Run("not connected", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b := l.broker()
			a := l.acquire(b, "k", 2*time.Second)
			a.fails("timeout", "not connected")
			a.after(2 * time.Second)
		})
	})
	t.Run("not connected: the transport takes no bytes", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open()
			block.c.in.setRoom(0)
			stuck := l.acquire(b, "stuck", 9*time.Second)
			a := l.acquire(b, "k", 2*time.Second)
			a.fails("timeout", "not connected")
			a.after(2 * time.Second)
			stuck.pending()
		})
	})
	t.Run("client capacity", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open(func(c *Config) { c.MaxPending = 1 })
			first := l.acquire(b, "first", 10*time.Second)
			block.acquire("first")
			a := l.acquire(b, "k", 2*time.Second)
			a.fails("timeout", "client capacity")
			a.after(2 * time.Second)
			block.quiet()
			first.pending()
		})
	})
	t.Run("authentication refused by one node, no other reached", func(t *testing.T) {
		inLab(t, func(l *lab) {
			l.node("a:1").set(func(n *fakeNode) { n.auto = refuseAll })
			b := l.broker(func(c *Config) { c.Addrs = []string{"a:1", "b:1"} })
			a := l.acquire(b, "k", 2*time.Second)
			a.fails("timeout", "authentication refused")
			a.after(2 * time.Second)
		})
	})
}

func refuseAll(p *peer) {
	p.challengeAny()
	p.l.sleep(wire.RefusalDelay)
	p.send(wire.Reply{Op: wire.OpError, Text: string(wire.AuthFailed)})
	p.c.Close()
}

func TestACancelWhileUnsentIsCancelledCertainlyNotAcquired(t *testing.T) {
	t.Run("no session", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b := l.broker()
			a := l.acquire(b, "k", 9*time.Second)
			a.cancel()
			a.fails("cancelled", "context canceled")
			a.after(0)
		})
	})
	t.Run("waiting for a place", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open(func(c *Config) { c.MaxPending = 1 })
			l.acquire(b, "first", 10*time.Second)
			a := l.acquire(b, "k", 9*time.Second)
			a.cancel()
			a.fails("cancelled", "context canceled")
			block.acquire("first")
			block.quiet()
			block.wantClosed(false)
		})
	})
	t.Run("behind a write that is under way", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open()
			block.c.in.setRoom(0)
			first := l.acquire(b, "first", 9*time.Second)
			a := l.acquire(b, "k", 9*time.Second)
			a.cancel()
			a.fails("cancelled", "context canceled")
			block.c.in.setRoom(1000)
			block.acquire("first")
			block.quiet()
			block.wantClosed(false)
			first.pending()
		})
	})
	t.Run("the context had ended before", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, kept, block := l.open()
			ctx, cancel := context.WithTimeout(l.Context(), time.Second)
			defer cancel()
			l.sleep(2 * time.Second)
			_, err := b.Acquire(ctx, "k", 0, DefaultLease, 0)
			wantKinds(t, err, "cancelled", "context deadline")
			kept.quiet()
			block.quiet()
		})
	})
}

func TestTIsATimeoutCertainlyNotAcquired(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquire(b, "k", 5*time.Second)
		r := block.acquire("k")
		l.sleep(5 * time.Second)
		block.send(answer(wire.OpTimeout, r))
		a.fails("timeout")
		now := l.acquire(b, "k", 0)
		kept.send(answer(wire.OpTimeout, kept.acquire("k")))
		now.fails("timeout")
		now.after(0)
		kept.wantClosed(false)
		block.wantClosed(false)
	})
}

func TestBIsBusyAtOnceAndNotTriedAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		a := l.acquire(b, "k", 5*time.Second)
		r := block.acquire("k")
		l.sleep(time.Second)
		block.send(answer(wire.OpBusy, r))
		a.fails("busy")
		a.after(time.Second)
		l.sleep(10 * time.Second)
		block.quiet()
		again := l.acquire(b, "k", 5*time.Second)
		if r2 := block.acquire("k"); r2.Owner == r.Owner {
			l.Fatal("the caller's next call has the same owner")
		}
		block.wantClosed(false)
		again.cancel()
		again.wait()
	})
}

func TestADeadlineAndGraceAfterSendingCloseThatExactSession(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquire(b, "k", 5*time.Second)
		block.acquire("k")
		l.sleep(5*time.Second + DefaultReplyGrace - time.Millisecond)
		a.pending()
		block.wantClosed(false)
		a.fails("indeterminate")
		a.after(5*time.Second + DefaultReplyGrace)
		block.wantClosed(true)
		kept.wantClosed(false)
	})
}

func TestACancelAfterSendingClosesThatExactSession(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquire(b, "k", 5*time.Second)
		block.acquire("k")
		l.sleep(time.Second)
		a.cancel()
		a.fails("indeterminate", "context canceled")
		a.after(time.Second)
		block.wantClosed(true)
		kept.wantClosed(false)
	})
}

// ends are the ways in which a session ends on its callers, and what they are told.
var ends = []struct {
	name string
	end  func(p *peer)
	want []string
}{
	{"end of stream", func(p *peer) { p.c.Close() }, []string{"indeterminate"}},
	{"reset", func(p *peer) { p.c.reset() }, []string{"indeterminate"}},
	{"M", func(p *peer) { p.send(wire.Reply{Op: wire.OpMoved, Text: "elsewhere:1"}) }, []string{"indeterminate"}},
	{"E bad_op", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "bad_op"}) }, []string{"indeterminate", "protocol violation"}},
	{"E bad_request", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "bad_request"}) }, []string{"indeterminate", "protocol violation"}},
	{"E line_too_long", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "line_too_long"}) }, []string{"indeterminate", "protocol violation"}},
	{"E bad_lease", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "bad_lease"}) }, []string{"indeterminate", "protocol violation"}},
	{"E bad_key", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "bad_key"}) }, []string{"indeterminate", "protocol violation"}},
	{"E auth_failed", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "auth_failed"}) }, []string{"indeterminate", "protocol violation"}},
	{"E not_active", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "not_active"}) }, []string{"indeterminate"}},
	{"E no_leader", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "no_leader"}) }, []string{"indeterminate"}},
	{"E of no known reason", func(p *peer) { p.send(wire.Reply{Op: wire.OpError, Text: "full_moon"}) }, []string{"indeterminate", "protocol violation"}},
	{"an unknown op", func(p *peer) { p.raw("Zzz\n") }, []string{"indeterminate", "protocol violation"}},
	{"an oversized reply", func(p *peer) { p.raw("L" + string(make([]byte, 400))) }, []string{"indeterminate", "protocol violation"}},
	{"a malformed reply", func(p *peer) { p.raw("T12345678a b\n") }, []string{"indeterminate", "protocol violation"}},
	{"a grant of token 0", func(p *peer) { p.raw("A" + string(make([]byte, 16)) + "k\n") }, []string{"indeterminate", "protocol violation"}},
	{"A for nobody", func(p *peer) { p.send(wire.Reply{Op: wire.OpAcquire, Owner: 999, Token: 7, Text: "stray"}) }, []string{"indeterminate", "protocol violation"}},
	{"A for another key", func(p *peer) { p.send(wire.Reply{Op: wire.OpAcquire, Owner: 1, Token: 7, Text: "stray"}) }, []string{"indeterminate", "protocol violation"}},
	{"T for another key", func(p *peer) { p.send(wire.Reply{Op: wire.OpTimeout, Owner: 1, Text: "stray"}) }, []string{"indeterminate", "protocol violation"}},
	{"T for nobody", func(p *peer) { p.send(wire.Reply{Op: wire.OpTimeout, Owner: 999, Text: "k"}) }, []string{"indeterminate", "protocol violation"}},
	{"B for nobody", func(p *peer) { p.send(wire.Reply{Op: wire.OpBusy, Owner: 999, Text: "k"}) }, []string{"indeterminate", "protocol violation"}},
}

// The sent one is indeterminate and never sent again; the unsent one moves on to
// another session with the same owner and gets its ticket there.
func TestHoweverASessionEndsTheSentAreIndeterminateAndTheUnsentMoveOn(t *testing.T) {
	for _, test := range ends {
		t.Run(test.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				b, n, _, block := l.open()
				block.c.in.setRoom(10) // the first frame's write is under way
				sent := l.acquire(b, "sent", 5*time.Second)
				unsent := l.acquire(b, "unsent", 5*time.Second)
				test.end(block)
				sent.fails(test.want...)
				block.wantClosed(true)
				sent.after(0)
				next := n.session(single)
				r := next.acquire("unsent")
				if r.Owner != 2 {
					l.Fatalf("owner %d, want the call's own, 2", r.Owner)
				}
				next.send(grant(r, 5))
				unsent.granted()
				l.sleep(10 * time.Second)
				next.quiet()
			})
		})
	}
}

func TestAStrayGrantIsGivenBack(t *testing.T) {
	inLab(t, func(l *lab) {
		_, _, kept, block := l.open()
		block.send(wire.Reply{Op: wire.OpAcquire, Owner: 999, Token: 7, Text: "stray"})
		kept.send(answer(wire.OpRelease, kept.release("stray", 7)))
		block.wantClosed(true)
	})
}

// A server that repeats itself must not take a lock from its holder.
func TestASecondGrantReplyDoesNotReleaseALiveTicket(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquire(b, "k", time.Second)
		r := block.acquire("k")
		block.send(grant(r, 7))
		a.granted()
		block.send(grant(r, 7))
		block.wantClosed(true)
		kept.quiet()
	})
}

func TestANeighboursDeadlineOrCancelEndsTheSessionForAllOnIt(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open()
			first := l.acquire(b, "first", 2*time.Second)
			neighbour := l.acquire(b, "neighbour", 9*time.Second)
			block.acquire("first")
			block.acquire("neighbour")
			if cancel {
				first.cancel()
				first.fails("indeterminate", "context canceled")
			} else {
				first.fails("indeterminate")
			}
			neighbour.fails("indeterminate")
			if neighbour.took != first.took {
				l.Fatalf("the neighbour took %s, the first %s", neighbour.took, first.took)
			}
		})
	}
}

func TestAGrantWithTooLittleLeftIsGivenBack(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquireFor(b, "k", 9*time.Second, 10*time.Second, 8*time.Second)
		r := block.acquire("k")
		l.sleep(2*time.Second + time.Millisecond)
		block.send(grant(r, 7))
		a.fails("insufficient lease")
		kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		block.wantClosed(false)
		if s := b.Stats(); s.Held != 0 {
			l.Fatalf("%d tickets are held", s.Held)
		}
	})
}

func TestAGrantWithExactlyTheBudgetLeftIsATicket(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		// The budget counts as given, not rounded.
		a := l.acquireFor(b, "k", 9*time.Second, 10*time.Second, 7500*time.Millisecond)
		r := block.acquire("k")
		l.sleep(2500 * time.Millisecond)
		block.send(grant(r, 7))
		if left := a.granted().Remaining(); left != 7500*time.Millisecond {
			l.Fatalf("%s left, want 7.5s", left)
		}
	})
}

func TestAGrantWithNothingLeftIsNoTicketEvenWithoutABudget(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquireFor(b, "k", 9*time.Second, 2*time.Second, 0)
		r := block.acquire("k")
		l.sleep(2 * time.Second)
		block.send(grant(r, 7))
		a.fails("insufficient lease")
		kept.release("k", 7)
	})
}

// The process may be stopped, or not scheduled, between the look at the clock by which
// a grant is taken and the return to the caller.
func TestAGrantOfWhichTooLittleIsLeftWhenAcquireReturnsIsGivenBack(t *testing.T) {
	for _, test := range []struct{ lease, budget, stop time.Duration }{
		{2 * time.Second, 0, 3 * time.Second},
		{2 * time.Second, 0, 2 * time.Second},
		{2 * time.Second, time.Second, 1500 * time.Millisecond},
	} {
		inLab(t, func(l *lab) {
			b, _, kept, block := l.open()
			a := l.acquireFor(b, "k", 9*time.Second, test.lease, test.budget)
			r := block.acquire("k")
			l.stopAfter(2, test.stop) // both clocks were read for the grant
			block.send(grant(r, 7))
			a.fails("insufficient lease")
			wantText(l, a.err, max(test.lease-test.stop, 0).String()+" of the lease were left")
			kept.send(answer(wire.OpRelease, kept.release("k", 7)))
			l.sleep(time.Millisecond)
			if s := b.Stats(); s.Held != 0 || s.Compensations != 0 {
				l.Fatalf("%d held, %d being given back", s.Held, s.Compensations)
			}
			block.wantClosed(false)
		})
	}
}

func TestAGrantThatWasReadInTimeIsATicketHoweverLateAcquireReturns(t *testing.T) {
	inLab(t, func(l *lab) {
		// Only the reader is stopped here, so the watch must have patience.
		b, _, _, block := l.open(func(c *Config) { c.ReplyGrace = new(10 * time.Second) })
		a := l.acquireFor(b, "k", time.Second, 30*time.Second, 20*time.Second)
		r := block.acquire("k")
		l.stopAfter(2, 5*time.Second)
		block.send(grant(r, 7))
		if left := a.granted().Remaining(); left != 25*time.Second {
			l.Fatalf("%s left, want 25s", left)
		}
		a.after(5 * time.Second)
	})
}

func TestAGrantReadAfterTheDeadlineIsGivenBackAndTheSessionStays(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.acquire(b, "k", 2*time.Second)
		neighbour := l.acquire(b, "neighbour", 9*time.Second)
		r := block.acquire("k")
		block.acquire("neighbour")
		l.sleep(2*time.Second + 100*time.Millisecond)
		a.pending()
		block.send(grant(r, 7))
		a.fails("indeterminate")
		a.after(2*time.Second + 100*time.Millisecond)
		kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		block.wantClosed(false)
		neighbour.pending()
	})
}

func TestAGrantReadTogetherWithACancelIsGivenBackOnAnotherSession(t *testing.T) {
	t.Run("the grant first", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, kept, block := l.open()
			ctx, cancel := context.WithCancel(context.Background())
			a := l.begin(func(_ context.Context, a *attempt) {
				a.ticket, a.err = b.Acquire(ctx, "k", 5*time.Second, DefaultLease, 0)
			})
			r := block.acquire("k")
			// The caller can't run between the two: it finds both.
			b.mu.Lock()
			c := b.leader.serving[1].sentOwners.get(r.Owner)
			b.granted(c, 7, b.clock.now())
			cancel()
			b.unlock()
			a.fails("indeterminate", "context canceled")
			block.wantClosed(true)
			kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		})
	})
	t.Run("the cancel first, the grant already read", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, kept, block := l.open()
			a := l.acquire(b, "k", 5*time.Second)
			r := block.acquire("k")
			b.mu.Lock()
			s := b.leader.serving[1]
			b.unlock()
			a.cancel()
			a.fails("indeterminate", "context canceled")
			block.wantClosed(true)
			// What the reader had in its hands when the cancel came.
			s.replies(grant(r, 7).Append(nil), b.clock.now())
			kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		})
	})
}

func TestAnUnsentAcquireGoesToAnotherSessionWhenTheBrokerClosesItIsClosed(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		block.c.in.setRoom(10)
		sent := l.acquire(b, "sent", 9*time.Second)
		unsent := l.acquire(b, "unsent", 9*time.Second)
		b.Close()
		sent.fails("indeterminate")
		unsent.fails("closed")
	})
}
