package lock

import (
	"bytes"
	"fmt"
	"testing"
)

// check says what is wrong with the machine, if anything: the table and the heap
// of deadlines hold the same grants, every token was granted, and the quiet period
// is not over.
func (m *Machine) check() error {
	if m.leases.Len() != len(m.grants) {
		return fmt.Errorf("%d deadlines, %d grants", m.leases.Len(), len(m.grants))
	}
	if until, quiet := m.QuietUntil(); quiet && until <= m.Now() {
		return fmt.Errorf("quiet until %v at %v", until, m.Now())
	}
	tokens := make(map[uint64]string)
	for key, g := range m.grants {
		switch other, twice := tokens[g.token()]; {
		case g.key != key:
			return fmt.Errorf("the grant of %q stands under %q", g.key, key)
		case !g.Queued():
			return fmt.Errorf("the grant of %q has no deadline in the heap", key)
		case g.token() == 0 || m.Next() != 0 && g.token() >= m.Next():
			return fmt.Errorf("%q has token %d, which was not granted: the next is %d", key, g.token(), m.Next())
		case twice:
			return fmt.Errorf("%q and %q both have token %d", key, other, g.token())
		}
		tokens[g.token()] = key
		if next, _ := m.leases.Next(); g.DueAt() < next {
			return fmt.Errorf("the grant of %q ends at %v, before the first deadline %v", key, g.DueAt(), next)
		}
	}
	return nil
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// encoded returns the snapshot of the machine.
func encoded(t fataler, m *Machine) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := m.Snapshot().WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d bytes written of %d: %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// decoded returns the machine of a snapshot.
func decoded(t fataler, snapshot []byte) *Machine {
	t.Helper()
	m, err := Read(bytes.NewReader(snapshot))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// begun returns a machine whose first reign has begun.
func begun(t testing.TB, first uint64) *Machine {
	t.Helper()
	m := New()
	var out Outcome
	m.Apply(&Entry{First: first}, &out)
	if out.Reign != 1 {
		t.Fatalf("the first reign has number %d", out.Reign)
	}
	return m
}
