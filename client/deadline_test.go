package client

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// One deadline, its grace, places and retries: docs/CLIENT.md, section 2.

// Reply grace.

func TestInsideTheGraceTAndBAreCertain(t *testing.T) {
	for op, want := range map[wire.Op]string{wire.OpTimeout: "timeout", wire.OpBusy: "busy"} {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open()
			a := l.acquire(b, "k", 2*time.Second)
			r := block.acquire("k")
			l.sleep(2*time.Second + DefaultReplyGrace - time.Millisecond)
			block.send(answer(op, r))
			a.fails(want)
			block.wantClosed(false)
		})
	}
}

// A write that was late asked the server to wait up to a second beyond the deadline.
func TestTheGraceCoversWhatRoundingUpADelayedWriteAdded(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.set(func(n *fakeNode) { n.refuse = true })
		b := l.broker()
		l.sleep(10 * time.Second)
		n.set(func(n *fakeNode) { n.refuse = false })
		a := l.acquire(b, "k", 9*time.Second)
		began := time.Now()
		n.session(single)
		block := n.session(single)
		r := block.acquire("k")
		written := time.Now()
		serverDone := time.Duration(r.Wait) * time.Second
		if late := written.Add(serverDone).Sub(began); late <= 9*time.Second {
			l.Fatalf("the server is done %s after the call began, want later than its wait", late)
		}
		l.sleep(serverDone)
		block.send(answer(wire.OpTimeout, r))
		a.fails("timeout")
		block.wantClosed(false)
	})
}

func TestACancelEndsTheGrace(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		a := l.acquire(b, "k", 2*time.Second)
		block.acquire("k")
		l.sleep(2*time.Second + 50*time.Millisecond)
		a.cancel()
		a.fails("indeterminate", "context canceled")
		a.after(2*time.Second + 50*time.Millisecond)
		block.wantClosed(true)
	})
}

func TestAGraceOfZeroClosesTheSessionAtTheDeadline(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open(func(c *Config) { c.ReplyGrace = new(time.Duration(0)) })
		a := l.acquire(b, "k", 2*time.Second)
		block.acquire("k")
		a.fails("indeterminate")
		a.after(2 * time.Second)
		block.wantClosed(true)
	})
}

func TestAGraceOfZeroKnowsNoRoundingEither(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open(func(c *Config) { c.ReplyGrace = new(time.Duration(0)) })
		block.c.in.setRoom(0)
		l.acquire(b, "first", 200*time.Second)
		a := l.acquire(b, "k", 5*time.Second)
		l.sleep(500 * time.Millisecond)
		block.c.in.setRoom(1000)
		block.acquire("first")
		if r := block.acquire("k"); r.Wait != 5 {
			l.Fatalf("wait %d, want 5", r.Wait)
		}
		a.fails("indeterminate")
		a.after(5 * time.Second)
	})
}

// One deadline.

func TestTheWaitFieldIsTheTimeLeftWhenTheBytesGoOut(t *testing.T) {
	tests := []struct {
		late time.Duration
		want uint8
	}{{0, 5}, {time.Millisecond, 5}, {time.Second, 4}, {1500 * time.Millisecond, 4}, {3999 * time.Millisecond, 2}, {4999 * time.Millisecond, 1}}
	for _, test := range tests {
		inLab(t, func(l *lab) {
			b, _, _, block := l.open()
			block.c.in.setRoom(0) // the write of another acquire is under way
			l.acquire(b, "first", 200*time.Second)
			l.acquire(b, "k", 5*time.Second)
			l.sleep(test.late)
			block.c.in.setRoom(1000)
			block.acquire("first")
			if r := block.acquire("k"); r.Wait != test.want {
				l.Errorf("written %s late, wait is %d, want %d", test.late, r.Wait, test.want)
			}
		})
	}
}

func TestALateConnectionDoesNotRestartTheServersWait(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		p := n.accept() // the other stays silent
		a := l.acquire(b, "k", 5*time.Second)
		l.sleep(2500 * time.Millisecond)
		p.challenge("")
		p.send(single)
		if r := p.acquire("k"); r.Wait != 3 {
			l.Fatalf("wait %d, want 3", r.Wait)
		}
		a.pending()
	})
}

func TestOnlyAWaitOfZeroSendsZeroAndGoesToTheKeptSession(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		l.acquire(b, "now", 0)
		if r := kept.acquire("now"); r.Wait != 0 {
			l.Fatalf("wait %d, want 0", r.Wait)
		}
		l.acquire(b, "short", time.Nanosecond)
		if r := block.acquire("short"); r.Wait != 1 {
			l.Fatalf("wait %d, want 1", r.Wait)
		}
	})
}

func TestAnImmediateAttemptHasFiveSecondsOfItsOwn(t *testing.T) {
	t.Run("unsent", func(t *testing.T) {
		inLab(t, func(l *lab) {
			a := l.acquire(l.broker(), "k", 0)
			a.fails("timeout", "not connected")
			a.after(5 * time.Second)
		})
	})
	t.Run("sent", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, kept, _ := l.open()
			a := l.acquire(b, "k", 0)
			kept.acquire("k")
			a.fails("indeterminate")
			a.after(5*time.Second + DefaultReplyGrace)
			kept.wantClosed(true)
		})
	})
}

// Places and owners.

func TestAtMostMaxPendingAcquiresArePendingAndTheNextTakesAFreedPlace(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open(func(c *Config) { c.MaxPending = 2 })
		l.acquire(b, "a", 9*time.Second)
		l.acquire(b, "b", 9*time.Second)
		third := l.acquire(b, "c", 5*time.Second)
		a := block.acquire("a")
		block.acquire("b")
		block.quiet()
		// A release needs none of these places.
		l.release(b, "x", 9)
		kept.release("x", 9)
		l.sleep(1500 * time.Millisecond)
		block.send(answer(wire.OpTimeout, a))
		// Waiting for a place counted against the deadline.
		if r := block.acquire("c"); r.Wait != 4 {
			l.Fatalf("wait %d, want 4", r.Wait)
		}
		third.pending()
	})
}

func TestTheDefaultIs1024PendingAcquires(t *testing.T) {
	inLab(t, func(l *lab) {
		l.node(here).auto = func(p *peer) {
			p.challengeAny()
			p.send(single)
			for {
				if _, ok := p.read(); !ok {
					return
				}
			}
		}
		b := l.broker()
		for range 1030 {
			go b.Acquire(l.Context(), "k", 250*time.Second, DefaultLease, 0)
		}
		l.sleep(10 * time.Second)
		if got := b.Stats().Pending; got != 1024 {
			l.Fatalf("%d are pending, want 1024", got)
		}
		b.Close()
	})
}

func TestOwnersAreNonZeroAndDifferent(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		var owners []uint64
		for range 10 {
			l.acquire(b, "same", 9*time.Second)
			owners = append(owners, block.acquire("same").Owner)
		}
		slices.Sort(owners)
		if owners[0] == 0 || len(slices.Compact(owners)) != 10 {
			l.Fatalf("owners %v", owners)
		}
	})
}

func TestABrokerWhoseOwnersAreUsedUpRefusesFurtherAcquires(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		b.owner = math.MaxUint64 - 1
		l.acquire(b, "last", 9*time.Second)
		if r := block.acquire("last"); r.Owner != math.MaxUint64 {
			l.Fatalf("owner %d, want the last one", r.Owner)
		}
		for range 2 {
			a := l.acquire(b, "more", 9*time.Second)
			a.fails("client capacity")
		}
		block.quiet()
	})
}

// Tries again.

func TestACertainlyUnsentAcquireIsTriedAgainAfter10msDoublingTo100ms(t *testing.T) {
	c := &call{}
	var got []time.Duration
	for range 6 {
		c.backOff(0)
		got = append(got, c.notBefore)
	}
	ms := time.Millisecond
	if want := []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms}; !slices.Equal(got, want) {
		t.Fatalf("pauses %v, want %v", got, want)
	}
}

func TestAnUnsentAcquireMovesToAnOpenSessionAfterItsPause(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		n.set(func(n *fakeNode) { n.refuse = true }) // only the kept session is left
		block.c.in.setRoom(10)
		l.acquire(b, "sent", 5*time.Second)
		a := l.acquire(b, "unsent", 5*time.Second)
		lost := time.Now()
		block.c.reset()
		r := kept.acquire("unsent")
		if pause := time.Since(lost); pause != 10*time.Millisecond {
			l.Fatalf("tried again after %s, want 10ms", pause)
		}
		kept.send(grant(r, 3))
		a.granted()
	})
}
