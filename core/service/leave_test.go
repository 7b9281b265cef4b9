package service

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
)

type silent struct{}

func (silent) Deliver(Answer)        {}
func (silent) Flush()                {}
func (silent) Leader(string)         {}
func (silent) End(EndReason, string) {}

// TestLeaveWhileWaitersAreAnswered: the waiters of a session that ends may be
// answered by others between the rounds in which they leave.
func TestLeaveWhileWaitersAreAnswered(t *testing.T) {
	for range 20 {
		s := New(local.New(1), Config{Limits: DefaultLimits()})
		holder, c := s.Open(silent{}, ""), s.Open(silent{}, "")
		for i := range 40 * maxRound {
			a := Acquire{Key: fmt.Sprint(i % 8), Wait: time.Hour, Lease: time.Hour}
			if i < 8 {
				s.Acquire(holder, a)
			} else {
				s.Acquire(c, a)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { s.Leave(c) })
		wg.Go(s.Drain)
		wg.Wait()
		if st := s.Stats(); st.Waiters != 0 {
			t.Fatalf("%d waiters are left", st.Waiters)
		}
		s.Close()
	}
}
