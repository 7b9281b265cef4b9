package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Close: docs/CLIENT.md, section 1. That no goroutine is left is checked after each
// test, by the bubble and by goleak.

func TestCloseReleasesWhatIsStillHeld(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		l.ticket(b, block, "a", 60*time.Second, 1)
		l.ticket(b, block, "b", 50*time.Second, 2)
		l.ticket(b, block, "detached", 50*time.Second, 3).Detach()
		l.ticket(b, block, "expired", time.Second, 4)
		l.sleep(3 * time.Second)
		done := l.begin(closeOf(b))
		got := map[string]uint64{}
		for range 2 {
			r := kept.next()
			got[r.Key] = r.Token
			kept.send(answer(wire.OpRelease, r))
		}
		wantKinds(l, done.wait().err)
		done.after(0)
		if len(got) != 2 || got["a"] != 1 || got["b"] != 2 {
			l.Fatalf("released %v", got)
		}
		kept.wantClosed(true)
		block.wantClosed(true)
	})
}

func TestCloseReleasesAnyNumberOfTicketsThroughTheReleasesPlaces(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.auto = simple(single)
		b := l.broker()
		for range 1000 {
			l.acquire(b, "k", 9*time.Second).granted()
		}
		wantKinds(l, b.Close())
		if s := b.Stats(); s.Held != 0 {
			l.Fatalf("%d are held", s.Held)
		}
	})
}

func TestCloseIsBoundedAndSaysWhatCouldNotBeReleased(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		l.ticket(b, block, "a", 60*time.Second, 1)
		l.ticket(b, block, "b", 60*time.Second, 2)
		done := l.begin(closeOf(b))
		done.wait().after(5 * time.Second)
		wantText(l, done.err, "2 tickets could not be released")
	})
}

func TestCloseIsBoundedHoweverManyTicketsAreHeld(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.auto = simple(single)
		b := l.broker()
		for range 300 {
			l.acquire(b, "k", 9*time.Second).granted()
		}
		n.set(func(n *fakeNode) { n.refuse = true })
		b.mu.Lock()
		for len(b.leader.serving) > 0 {
			b.end(b.leader.serving[0], errStalled, b.clock.mono())
		}
		b.unlock()
		done := l.begin(closeOf(b))
		done.wait().after(5 * time.Second)
		wantText(l, done.err, "300 tickets could not be released")
	})
}

func TestCloseReleasesATicketWhoseReleaseWasNotCertain(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		ticket := l.ticket(b, block, "a", 60*time.Second, 1)
		a := l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
		for range 3 {
			kept.release("a", 1)
		}
		a.fails("indeterminate")
		done := l.begin(closeOf(b))
		kept.send(answer(wire.OpRelease, kept.release("a", 1)))
		wantKinds(l, done.wait().err)
	})
}

func TestCloseWithNothingHeldIsImmediateEvenWithoutAConnection(t *testing.T) {
	inLab(t, func(l *lab) {
		l.node(here).hang = true
		b := l.broker()
		done := l.begin(closeOf(b))
		wantKinds(l, done.wait().err)
		done.after(0)
	})
}

func TestCloseConnectsAgainToReleaseWhatIsHeld(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		l.ticket(b, block, "a", 60*time.Second, 1)
		l.acquire(b, "waits", 9*time.Second)
		block.acquire("waits")
		kept.c.Close()
		done := l.begin(closeOf(b))
		block.wantClosed(true) // its waiter ends with it
		next := n.session(single)
		next.send(answer(wire.OpRelease, next.release("a", 1)))
		wantKinds(l, done.wait().err)
	})
}

func TestAfterCloseEveryCallIsClosed(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		ticket := l.ticket(b, block, "a", 60*time.Second, 1)
		go b.Close()
		synctest.Wait()
		_, err := b.Acquire(l.Context(), "k", time.Second, DefaultLease, 0)
		wantKinds(l, err, "closed")
		wantKinds(l, b.Release(l.Context(), "k", 1), "closed")
		wantKinds(l, ticket.Release(l.Context()), "closed")
		wantText(l, b.Close(), "could not be released") // waits for the first one
		_, err = b.Acquire(l.Context(), "k", time.Second, DefaultLease, 0)
		wantKinds(l, err, "closed")
	})
}

func TestAReleaseUnderWayIsNotCutOffByClose(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		rel := l.release(b, "k", 7)
		r := kept.release("k", 7)
		done := l.begin(closeOf(b))
		l.sleep(time.Second)
		done.pending()
		kept.send(answer(wire.OpRelease, r))
		wantKinds(l, rel.wait().err)
		wantKinds(l, done.wait().err)
	})
}

func TestAGrantThatComesDuringCloseIsGivenBack(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		ticket := l.ticket(b, block, "held", 60*time.Second, 1)
		_ = ticket
		a := l.acquire(b, "k", 0)
		r := kept.acquire("k")
		b.mu.Lock()
		s := b.leader.kept
		b.unlock()
		done := l.begin(closeOf(b))
		a.fails("indeterminate")
		s.replies(grant(r, 9).Append(nil), b.clock.now()) // the reader had it in its hands
		got := map[uint64]bool{}
		for range 2 {
			r := block.next()
			got[r.Token] = true
			block.send(answer(wire.OpRelease, r))
		}
		wantKinds(l, done.wait().err)
		if !got[1] || !got[9] {
			l.Fatalf("released %v", got)
		}
	})
}

func closeOf(b *Broker) func(context.Context, *attempt) {
	return func(_ context.Context, a *attempt) { a.err = b.Close() }
}
