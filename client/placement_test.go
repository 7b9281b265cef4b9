package client

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Blast radius: docs/CLIENT.md, section 2.

// fill begins n blocking acquires, key by key.
func (l *lab) fill(b *Broker, prefix string, n int) {
	for i := range n {
		l.acquire(b, fmt.Sprintf("%s-%d", prefix, i), 200*time.Second)
	}
}

// load returns how many acquires have come on p and were not looked at yet.
func (p *peer) load() int {
	synctest.Wait()
	p.drain()
	return len(p.pending)
}

func TestBlockingAcquiresShareASessionWithAtMost15OthersAndThenAnotherIsOpened(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		l.fill(b, "a", 16)
		if got := block.load(); got != 16 {
			l.Fatalf("%d on the session, want 16", got)
		}
		if n.dialled() != 2 {
			l.Fatalf("%d sessions, want 2", n.dialled())
		}
		l.fill(b, "b", 1)
		next := n.session(single)
		if next.load() != 1 || block.load() != 16 || kept.load() != 0 {
			l.Fatalf("%d, %d, %d on new, old and kept, want 1, 16, 0", next.load(), block.load(), kept.load())
		}
	})
}

func TestImmediateAttemptsAndReleasesNeverRideWithBlockingAcquires(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		l.fill(b, "a", 20)
		extra := n.session(single)
		l.acquire(b, "now", 0)
		l.release(b, "held", 4)
		if got := kept.load(); got != 2 {
			l.Fatalf("%d requests on the kept session, want 2", got)
		}
		if block.load() != 16 || extra.load() != 4 {
			l.Fatalf("%d and %d blocking, want 16 and 4", block.load(), extra.load())
		}
	})
}

func TestWhenAllAreOpenAndFullBlockingAcquiresAreSpreadEvenlyTheKeptSessionLast(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open(func(c *Config) { c.MaxSessions = 4 })
		l.fill(b, "a", 3*16)
		peers := []*peer{block, n.session(single), n.session(single)}
		loads := func() (got []int) {
			for _, p := range append(peers, kept) {
				got = append(got, p.load())
			}
			return got
		}
		if got := fmt.Sprint(loads()); got != "[16 16 16 0]" {
			l.Fatalf("loads %s", got)
		}
		l.fill(b, "b", 16)
		if got := fmt.Sprint(loads()); got != "[16 16 16 16]" {
			l.Fatalf("loads %s: the kept session takes what is too much for the others", got)
		}
		l.fill(b, "c", 3)
		if got := fmt.Sprint(loads()); got != "[17 17 17 16]" {
			l.Fatalf("loads %s", got)
		}
		l.fill(b, "d", 5)
		if got := fmt.Sprint(loads()); got != "[18 18 18 18]" {
			l.Fatalf("loads %s", got)
		}
		if n.dialled() != 4 {
			l.Fatalf("%d sessions, want 4", n.dialled())
		}
	})
}

func TestTheDefaultIsEightSessionsANode(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.auto = func(p *peer) {
			p.challengeAny()
			p.send(single)
			for _, ok := p.read(); ok; _, ok = p.read() {
			}
		}
		b := l.broker()
		l.sleep(time.Second)
		l.fill(b, "a", 300)
		l.sleep(time.Second)
		if got := b.Stats(); got.Serving != 8 || n.dialled() != 8 {
			l.Fatalf("%d sessions serve, %d were dialled, want 8", got.Serving, n.dialled())
		}
	})
}

func TestABlockingAcquireIsNotHeldBackByAnExtraSessionWhoseDialFails(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		n.set(func(n *fakeNode) { n.refuse = true })
		l.fill(b, "a", 17)
		if block.load() != 16 || kept.load() != 1 {
			l.Fatalf("%d and %d, want 16 and 1", block.load(), kept.load())
		}
	})
}

func TestABlockingAcquireIsNotHeldBackByAnExtraSessionWhoseDialIsSlow(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		n.set(func(n *fakeNode) { n.hang = true })
		l.fill(b, "a", 17)
		if block.load() != 16 || kept.load() != 0 {
			l.Fatalf("%d and %d at once, want 16 and 0", block.load(), kept.load())
		}
		l.sleep(extraPatience)
		if kept.load() != 1 {
			l.Fatal("the acquire still waits for the slow dial")
		}
		// Nobody else waits for it.
		l.fill(b, "b", 1)
		if block.load()+kept.load() != 18 {
			l.Fatalf("%d and %d, want 18 in all", block.load(), kept.load())
		}
	})
}

func TestAnAcquireThatWaitsForAnExtraSessionTakesARoomThatGetsFree(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, _, block := l.open()
		n.set(func(n *fakeNode) { n.hang = true })
		l.fill(b, "a", 16)
		a := l.acquire(b, "late", 9*time.Second)
		block.send(answer(wire.OpBusy, block.acquire("a-0")))
		for range 15 {
			block.next()
		}
		began := time.Now()
		block.acquire("late")
		within(l, "taking the room", time.Since(began), 0, 0)
		a.pending()
	})
}

func TestIdleExtraSessionsAreClosed(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		l.fill(b, "a", 17)
		extra := n.session(single)
		r := extra.acquire("a-16")
		l.sleep(2 * idleTime)
		extra.wantClosed(false)
		extra.send(answer(wire.OpBusy, r))
		l.sleep(2*idleTime + time.Second)
		extra.wantClosed(true)
		kept.wantClosed(false)
		block.wantClosed(false)
		if n.dialled() != 3 {
			l.Fatalf("dialled %d times, want 3", n.dialled())
		}
		if got := b.Stats().Sessions; got != 2 {
			l.Fatalf("%d sessions, want 2", got)
		}
	})
}

// Dense packing lets extra sessions run empty.
func TestBlockingAcquiresArePackedDensely(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, _, block := l.open()
		l.fill(b, "a", 17)
		extra := n.session(single)
		block.send(answer(wire.OpBusy, block.acquire("a-0")))
		synctest.Wait()
		l.fill(b, "b", 1)
		if block.load() != 16 || extra.load() != 1 {
			l.Fatalf("%d and %d, want 16 and 1", block.load(), extra.load())
		}
	})
}

func TestALostKeptSessionIsReplacedByOneWithoutBlockingAcquires(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		l.fill(b, "a", 1)
		kept.c.Close()
		synctest.Wait()
		l.release(b, "held", 4)
		next := n.session(single)
		next.release("held", 4)
		if block.load() != 1 {
			l.Fatal("the release rode with a blocking acquire")
		}
	})
}

func TestAKeptSessionThatHadToTakeBlockingAcquiresIsRelievedByTheNextOneThatOpens(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		n.set(func(n *fakeNode) { n.refuse = true })
		block.c.Close()
		synctest.Wait()
		l.fill(b, "a", 3)
		if kept.load() != 3 {
			l.Fatalf("%d on the only session, want 3", kept.load())
		}
		n.set(func(n *fakeNode) { n.refuse = false })
		next := n.session(single)
		l.release(b, "held", 4)
		next.release("held", 4)
		l.fill(b, "b", 1)
		if kept.load() != 4 {
			l.Fatalf("%d blocking, want 4", kept.load())
		}
	})
}

func TestWithoutAnyOtherSessionAReleaseIsNotHeldBack(t *testing.T) {
	inLab(t, func(l *lab) {
		b, n, kept, block := l.open()
		l.fill(b, "a", 1)
		block.acquire("a-0")
		n.set(func(n *fakeNode) { n.refuse = true })
		kept.c.Close()
		synctest.Wait()
		l.sleep(time.Second)
		l.release(b, "held", 4)
		block.release("held", 4)
	})
}
