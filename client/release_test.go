package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Releases and compensations: docs/CLIENT.md, sections 2 and 3.

func TestRIsReleasedAndNIsNotCurrent(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		a := l.release(b, "k", 7)
		kept.send(answer(wire.OpRelease, kept.release("k", 7)))
		wantKinds(l, a.wait().err)
		a = l.release(b, "k", 7)
		kept.send(answer(wire.OpNotCurrent, kept.release("k", 7)))
		a.fails("not current")
	})
}

func TestToken0IsNotCurrentWithoutBeingSent(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		a := l.release(b, "k", 0)
		a.fails("not current")
		kept.probes = true
		kept.quiet()
		block.quiet()
	})
}

func TestAReleaseHasFiveSecondsInAllAndTwoAnAttempt(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		began := time.Now()
		a := l.release(b, "k", 7)
		var at []time.Duration
		for range 3 {
			kept.release("k", 7)
			at = append(at, time.Since(began))
		}
		a.fails("indeterminate")
		a.after(5 * time.Second)
		ms := time.Millisecond
		if want := []time.Duration{0, 2010 * ms, 4030 * ms}; !slices.Equal(at, want) {
			l.Fatalf("sent at %v, want %v", at, want)
		}
		kept.wantClosed(false)
		block.quiet()
	})
}

func TestAReleaseWithoutAConnectionIsATimeoutThatSaysWhy(t *testing.T) {
	inLab(t, func(l *lab) {
		a := l.release(l.broker(), "k", 7)
		a.fails("timeout", "not connected")
		a.after(5 * time.Second)
	})
}

func TestAReleaseIsTriedAgainAfterItsSessionEndsSinceItNamesTheToken(t *testing.T) {
	for _, test := range ends {
		if strings.HasPrefix(test.name, "A for") {
			continue // its compensation is released there as well
		}
		t.Run(test.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				b, _, kept, block := l.open()
				a := l.release(b, "k", 7)
				kept.release("k", 7)
				test.end(kept)
				// The other session, which has no blocking acquires, is kept now.
				block.send(answer(wire.OpRelease, block.release("k", 7)))
				wantKinds(l, a.wait().err)
				a.after(10 * time.Millisecond)
			})
		})
	}
}

// N to a release whose earlier attempt may have arrived: the grant is gone, and that
// attempt may be why. The caller can tell it from an N to the only attempt.
func TestNotCurrentSaysWhenAnEarlierAttemptMayHaveReleasedIt(t *testing.T) {
	check := func(l *lab, err error) {
		l.Helper()
		wantKinds(l, err, "not current", "indeterminate")
		wantText(l, err, "not current", "an earlier attempt may have released it")
	}
	for _, test := range ends {
		if strings.HasPrefix(test.name, "A for") {
			continue // its compensation is released there as well
		}
		t.Run("session ends: "+test.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				b, _, kept, block := l.open()
				a := l.release(b, "k", 7)
				kept.release("k", 7)
				test.end(kept)
				block.send(answer(wire.OpNotCurrent, block.release("k", 7)))
				check(l, a.wait().err)
			})
		})
	}
	t.Run("an attempt without an answer in its time", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, kept, _ := l.open()
			a := l.release(b, "k", 7)
			kept.release("k", 7)
			kept.send(answer(wire.OpNotCurrent, kept.release("k", 7)))
			check(l, a.wait().err)
		})
	})
	t.Run("an earlier call of the ticket's release", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, _, kept, block := l.open()
			ticket := l.ticket(b, block, "k", 60*time.Second, 7)
			a := l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
			kept.release("k", 7)
			a.cancel()
			a.fails("indeterminate", "context canceled")
			a = l.begin(func(ctx context.Context, a *attempt) { a.err = ticket.Release(ctx) })
			kept.send(answer(wire.OpNotCurrent, kept.release("k", 7)))
			check(l, a.wait().err)
			check(l, ticket.Release(l.Context()))
			wantKinds(l, ticket.Close())
			kept.quiet()
		})
	})
	t.Run("not when no earlier attempt was sent", func(t *testing.T) {
		inLab(t, func(l *lab) {
			b, n, kept, block := l.open()
			kept.c.in.setRoom(0)
			l.release(b, "under-way", 1)
			a := l.release(b, "k", 7) // queued behind a write that stalls
			kept.c.Close()
			other := n.session(single)
			for _, p := range []*peer{block, other} {
				p.drain()
				for _, r := range p.pending {
					p.send(answer(wire.OpNotCurrent, r))
				}
			}
			a.fails("not current")
		})
	})
}

func TestAReleaseIsTriedAgainAfter10msDoublingTo200ms(t *testing.T) {
	c := &call{release: true}
	var got []time.Duration
	for range 7 {
		c.backOff(0)
		got = append(got, c.notBefore)
	}
	ms := time.Millisecond
	if want := []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 200 * ms, 200 * ms}; !slices.Equal(got, want) {
		t.Fatalf("pauses %v, want %v", got, want)
	}
}

func TestALateAnswerToAReleaseIsDropped(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		a := l.release(b, "k", 7)
		r := kept.release("k", 7)
		l.sleep(2100 * time.Millisecond)
		kept.release("k", 7) // the second attempt
		kept.send(answer(wire.OpRelease, r), answer(wire.OpNotCurrent, r))
		wantKinds(l, a.wait().err)
		kept.wantClosed(false)
		kept.send(wire.Reply{Op: wire.OpRelease, Token: 99, Text: "never"})
		kept.wantClosed(false)
	})
}

func TestACancelledReleaseIsCancelledWhileUnsentElseIndeterminate(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		kept.c.in.setRoom(0)
		sent := l.release(b, "a", 1)
		unsent := l.release(b, "b", 2)
		sent.cancel()
		unsent.cancel()
		sent.fails("indeterminate", "context canceled")
		unsent.fails("cancelled", "context canceled")
		kept.c.in.setRoom(1000)
		kept.release("a", 1)
		kept.quiet()
		kept.wantClosed(false)
	})
}

func TestTwoReleasesOfOneTokenEachGetTheirAnswer(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		first, second, other := l.release(b, "k", 7), l.release(b, "k", 7), l.release(b, "other", 7)
		r := kept.release("k", 7)
		kept.release("k", 7)
		o := kept.release("other", 7)
		kept.send(answer(wire.OpRelease, r))
		wantKinds(l, first.wait().err)
		second.pending()
		other.pending()
		kept.send(answer(wire.OpRelease, o), answer(wire.OpNotCurrent, r))
		second.fails("not current")
		wantKinds(l, other.wait().err)
	})
}

func TestACancelledReleaseLeavesTheOthersOfItsTokenTheirAnswers(t *testing.T) {
	for cancelled := range 3 {
		inLab(t, func(l *lab) {
			b, _, kept, _ := l.open()
			var all []*attempt
			var r wire.Request
			for range 3 {
				all = append(all, l.release(b, "k", 7))
				r = kept.release("k", 7)
			}
			all[cancelled].cancel()
			all[cancelled].fails("indeterminate", "context canceled")
			kept.send(answer(wire.OpRelease, r))
			synctest.Wait()
			kept.send(answer(wire.OpNotCurrent, r))
			rest := slices.Delete(all, cancelled, cancelled+1)
			wantKinds(l, rest[0].wait().err)
			rest[1].fails("not current")
		})
	}
}

func TestReleasesHave128PlacesOfTheirOwn(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		for i := range 130 {
			l.release(b, "k", uint64(i+1))
		}
		if got := kept.load(); got != 128 {
			l.Fatalf("%d releases were sent, want 128", got)
		}
		kept.send(answer(wire.OpRelease, kept.next()))
		if got := kept.load(); got != 128 {
			l.Fatalf("%d are left to look at, want 128: one freed place is one more", got)
		}
	})
}

func TestReleasesAreWrittenBeforeAcquires(t *testing.T) {
	inLab(t, func(l *lab) {
		b, _, kept, _ := l.open()
		kept.c.in.setRoom(0)
		l.acquire(b, "under-way", 0)
		l.acquire(b, "acquire", 0)
		l.release(b, "release", 7)
		kept.c.in.setRoom(1000)
		kept.acquire("under-way")
		kept.release("release", 7)
		kept.acquire("acquire")
	})
}

func TestCompensationsWaitInABoundedQueueAndACounterSaysWhatFoundItFull(t *testing.T) {
	inLab(t, func(l *lab) {
		var dropped int
		b := l.broker(func(c *Config) {
			c.Events = func(e Event) {
				if e.Kind == EventCompensationDropped {
					dropped++
				}
			}
		})
		b.mu.Lock()
		for i := range maxCompensations + 3 {
			b.compensate("k", uint64(i+1), b.clock.mono())
		}
		b.unlock()
		synctest.Wait()
		if s := b.Stats(); s.Compensations != maxCompensations || s.CompensationsDropped != 3 || dropped != 3 {
			l.Fatalf("%d wait, %d dropped, %d told; want %d, 3, 3", s.Compensations, s.CompensationsDropped, dropped, maxCompensations)
		}
		l.sleep(5 * time.Second)
		synctest.Wait()
		if s := b.Stats(); s.Compensations != 0 {
			l.Fatalf("%d compensations are left after their 5 s", s.Compensations)
		}
	})
}

func TestACompensationIsTriedAgainLikeARelease(t *testing.T) {
	inLab(t, func(l *lab) {
		var told []string
		b, _, kept, block := l.open(func(c *Config) {
			c.Events = func(e Event) {
				if e.Kind == EventCompensation {
					told = append(told, fmt.Sprint(e.Key, e.Err))
				}
			}
		})
		b.mu.Lock()
		b.compensate("k", 7, b.clock.mono())
		b.unlock()
		kept.release("k", 7)
		kept.c.Close()
		block.send(answer(wire.OpRelease, block.release("k", 7)))
		synctest.Wait()
		if fmt.Sprint(told) != "[k<nil>]" {
			l.Fatalf("told %v", told)
		}
	})
}
