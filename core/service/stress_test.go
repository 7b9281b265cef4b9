package service

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
)

// Many sessions at once, on real threads: run it with -race. A key that was
// granted twice would be seen by its holder's mark.
func TestManySessionsAtOnce(t *testing.T) {
	const sessions, rounds = 16, 200
	s := New(local.New(1), Config{Limits: DefaultLimits()})
	keys := make([]markedKey, 4)
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for n := 0; n < rounds; n++ {
				visit(t, s, keys, rng, uint64(i*rounds+n))
			}
		})
	}
	wg.Wait()
	if err := s.check(); err != nil {
		t.Errorf("the service is broken: %v", err)
	}
	if st := s.Stats(); st.Held != 0 || st.Waiters != 0 {
		t.Errorf("%d keys are held and %d waiters left", st.Held, st.Waiters)
	}
	s.Close()
}

type markedKey struct {
	holder atomic.Uint64 // the owner that has it, plus one
}

// visit takes a key, marks it, and gives it back; now and then it leaves before it
// was told anything.
func visit(t *testing.T, s *Service, keys []markedKey, rng *rand.Rand, owner uint64) {
	told := make(inbox, 8)
	session := s.Open(told, "")
	defer s.Leave(session)
	n := rng.IntN(len(keys))
	key := fmt.Sprint(n)

	s.Acquire(session, Acquire{Key: key, Owner: owner, Wait: time.Minute, Lease: time.Minute})
	if rng.IntN(10) == 0 {
		s.Leave(session)
		select {
		case a := <-told: // it was granted before
			s.Abandon(key, a.Token)
		default:
		}
		return
	}
	a := <-told
	if a.Outcome != Granted || a.Owner != owner {
		t.Errorf("told %+v", a)
		return
	}
	if !keys[n].holder.CompareAndSwap(0, owner+1) {
		t.Errorf("%s was granted to %d while another had it", key, owner)
	}
	s.Release(session, key, 0)
	s.Stats()
	keys[n].holder.Store(0)
	s.Release(session, key, a.Token)
	for _, want := range []Outcome{NotCurrent, Released} {
		if got := <-told; got.Outcome != want {
			t.Errorf("told %+v, want outcome %d", got, want)
		}
	}
}

// inbox is a sink that somebody reads.
type inbox chan Answer

func (c inbox) Deliver(a Answer)      { c <- a }
func (c inbox) Flush()                {}
func (c inbox) Leader(string)         {}
func (c inbox) End(EndReason, string) {}
