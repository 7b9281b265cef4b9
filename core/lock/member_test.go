package lock

import (
	"fmt"
	"strings"
	"testing"
)

func applyMember(m *Machine, member *Member) Status {
	var out Outcome
	m.Apply(&Entry{Commands: []Command{{Kind: KindMember, Member: member}}}, &out)
	return out.Results[0].Status
}

// MaxRemoved ids are remembered. One more, and the id that was removed first is
// forgotten, on every replica the same one.
func TestRemovedIDsAreBounded(t *testing.T) {
	m := New()
	// The order of removal is not that of the ids.
	id := func(i int) string { return fmt.Sprintf("n%03d", i*7%(MaxRemoved+1)) }
	for i := range MaxRemoved + 1 {
		if i == MaxRemoved/2 {
			// That it is removed again does not make an id younger.
			applyMember(m, &Member{ID: id(0), Removed: true})
			m = decoded(t, encoded(t, m))
		}
		if s := applyMember(m, &Member{ID: id(i), Client: "ignored:1", Removed: true}); s != Done {
			t.Fatalf("removing %s: %d", id(i), s)
		}
	}
	if n := len(m.Members()); n != MaxRemoved {
		t.Fatalf("%d removed ids are remembered, want %d", n, MaxRemoved)
	}
	for i := range MaxRemoved + 1 {
		want := Refused
		if i == 0 {
			want = Done
		}
		if s := applyMember(m, &Member{ID: id(i)}); s != want {
			t.Errorf("%s comes back: %d, want %d", id(i), s, want)
		}
	}
}

func TestMembersAreBounded(t *testing.T) {
	m := New()
	for i := range MaxMembers {
		if s := applyMember(m, &Member{ID: fmt.Sprint("n", i)}); s != Done {
			t.Fatalf("member %d: %d", i, s)
		}
	}
	long := strings.Repeat("x", MaxMemberText+1)
	for name, c := range map[string]struct {
		member *Member
		want   Status
	}{
		"one too many":         {&Member{ID: "more"}, Refused},
		"a change of one":      {&Member{ID: "n0", Client: long[1:]}, Done},
		"no member":            {nil, Refused},
		"no id":                {&Member{Client: "a:1"}, Refused},
		"no id to remove":      {&Member{Removed: true}, Refused},
		"a long id":            {&Member{ID: long}, Refused},
		"a long client":        {&Member{ID: "n0", Client: long}, Refused},
		"a long admin address": {&Member{ID: "n0", Admin: long}, Refused},
	} {
		if s := applyMember(m, c.member); s != c.want {
			t.Errorf("%s: %d, want %d", name, s, c.want)
		}
	}
	applyMember(m, &Member{ID: "n0", Removed: true})
	if s := applyMember(m, &Member{ID: "more"}); s != Done {
		t.Errorf("one in place of a removed one: %d", s)
	}
}
