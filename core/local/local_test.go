package local_test

import (
	"math"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/lock"
)

func propose(t *testing.T, p *local.Proposer, at time.Duration, c lock.Command) lock.Result {
	t.Helper()
	out, done := p.Propose(&lock.Entry{Elapsed: at, Commands: []lock.Command{c}})
	if !done {
		t.Fatal("the outcome of an entry is not known at once")
	}
	return out.Results[0]
}

// What a server passes is its start time in microseconds, so that tokens go on
// above those of the process before it.
func TestTokensBeginWhereTheServerSays(t *testing.T) {
	for first, want := range map[uint64]uint64{0: 1, 1: 1, 1_700_000_000_000_000: 1_700_000_000_000_000, math.MaxUint64: math.MaxUint64} {
		r := propose(t, local.New(first), 0, lock.Command{Kind: lock.KindGrant, Key: "a", Lease: time.Second})
		if r.Status != lock.Granted || r.Token != want {
			t.Errorf("the first of New(%d): status %d, token %d, want token %d", first, r.Status, r.Token, want)
		}
	}
}

// The first entry counts from the beginning: a lease granted an hour after it ends
// at its time, and what is asked about a time is answered for that time.
func TestTimesAreThoseOfTheEntries(t *testing.T) {
	p := local.New(1)
	if _, ok := p.NextDeadline(); ok || p.Len() != 0 {
		t.Error("a new proposer has a grant")
	}
	propose(t, p, time.Hour, lock.Command{Kind: lock.KindGrant, Key: "a", Owner: 7, Lease: 10 * time.Second})
	end := time.Hour + 10*time.Second
	if at, ok := p.NextDeadline(); !ok || at != end || p.Len() != 1 {
		t.Errorf("the first of %d leases ends at %v, want %v", p.Len(), at, end)
	}
	want := lock.Grant{Key: "a", Token: 1, Owner: 7, Deadline: end, Lease: 10 * time.Second}
	if g, ok := p.Current("a", end-1); !ok || g != want {
		t.Errorf("just before its end the grant is %+v %v, want %+v", g, ok, want)
	}
	if g, ok := p.Current("a", end); ok || g != (lock.Grant{}) {
		t.Errorf("at its end the grant is %+v %v", g, ok)
	}
	if g, ok := p.Current("b", 0); ok {
		t.Errorf("a key that was never granted has the grant %+v", g)
	}

	if r := propose(t, p, end, lock.Command{Kind: lock.KindRelease, Key: "a", Token: 1}); r.Status != lock.NotCurrent {
		t.Errorf("a release at the lease's end: %d", r.Status)
	}
}
