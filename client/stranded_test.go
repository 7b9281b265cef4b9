package client

import (
	"testing"
	"time"
)

// Whatever was tried before, a call ends at its deadline when no server comes back.

func TestACallWhoseServerIsGoneForGoodEndsAtItsDeadline(t *testing.T) {
	t.Run("a release that was sent", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, n, kept, block := l.open()
			a := l.release(b, "k", 7)
			kept.release("k", 7)
			n.set(func(n *fakeNode) { n.refuse = true })
			kept.c.Close()
			block.c.Close()
			a.fails("indeterminate")
			a.after(5 * time.Second)
		})
	})
	t.Run("a compensation that was sent", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, n, kept, block := l.open()
			a := l.acquireFor(b, "k", time.Second, 30*time.Second, 30*time.Second)
			r := block.acquire("k")
			l.sleep(time.Millisecond)
			block.send(grant(r, 7)) // too little is left of it
			a.fails("insufficient lease")
			kept.release("k", 7)
			n.set(func(n *fakeNode) { n.refuse = true })
			kept.c.Close()
			block.c.Close()
			l.sleep(6 * time.Second)
			if left := b.Stats().Compensations; left != 0 {
				l.Fatalf("%d compensations go on", left)
			}
		})
	})
	t.Run("an acquire that was moved on unsent", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, n, kept, block := l.open()
			block.c.in.setRoom(10)
			first := l.acquire(b, "first", 3*time.Second) // its write is under way
			second := l.acquire(b, "second", 3*time.Second)
			n.set(func(n *fakeNode) { n.refuse = true })
			kept.c.Close()
			block.c.Close()
			first.fails("indeterminate")
			second.fails("timeout", "not connected")
			second.after(3 * time.Second)
		})
	})
}
