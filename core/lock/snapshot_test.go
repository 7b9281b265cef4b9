package lock

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/due"
)

// aMachine has something in every part of its state.
func aMachine(t testing.TB) *Machine {
	t.Helper()
	m := New()
	var out Outcome
	e := anEntry()
	m.Apply(&e, &out)
	m.Apply(&Entry{Reign: 1, Elapsed: 100 * time.Second}, &out)
	m.Recover(250 * time.Second)
	return m
}

// A later version reads the snapshots of this one, and writes them while the level
// is the first.
func TestSnapshotsReadForEver(t *testing.T) {
	want := golden(t, "snapshot_v1.hex")
	m := aMachine(t)
	if got := encoded(t, m); !bytes.Equal(got, want) {
		t.Errorf("the machine is written as\n%x, want\n%x", got, want)
	}
	if Digest(decoded(t, want)) != Digest(m) {
		t.Error("what is read is another state")
	}
	sum := Digest(m)
	if !bytes.HasSuffix(want, sum[:]) {
		t.Error("the digest is not the checksum of the snapshot")
	}
}

// The digest is that of the state, whatever way led there: all entries, or some by
// way of a snapshot; and whatever order a map has.
func TestDigestIndependentOfTheWayThere(t *testing.T) {
	entries := make([]Entry, 40)
	for i := range entries {
		e := &entries[i]
		*e = Entry{Reign: 1, Elapsed: time.Duration(i) * time.Second}
		if i == 0 {
			e.First = 1
		}
		for j := range 20 {
			e.Commands = append(e.Commands,
				Command{Kind: KindGrant, Key: fmt.Sprint("k", i*j%97), Lease: time.Duration(1+j%7) * time.Second},
				Command{Kind: KindRelease, Key: fmt.Sprint("k", j), Token: uint64(i * j)},
				Command{Kind: KindMember, Member: &Member{ID: fmt.Sprint("n", i*j%11), Removed: j%5 == 4}})
		}
	}
	straight := New()
	digests := make([][32]byte, len(entries))
	var out Outcome
	for i := range entries {
		straight.Apply(&entries[i], &out)
		digests[i] = Digest(straight)
		if i > 0 && digests[i] == digests[i-1] {
			t.Fatalf("entry %d changes nothing in the digest", i)
		}
	}
	for from := range entries {
		m := New()
		for i := range entries {
			if i == from {
				m = decoded(t, encoded(t, m))
			}
			m.Apply(&entries[i], &out)
			if Digest(m) != digests[i] {
				t.Fatalf("after a snapshot before entry %d entry %d leads elsewhere", from, i)
			}
		}
	}
}

// A snapshot is that of its moment, whatever is applied before it is written.
func TestASnapshotDoesNotChange(t *testing.T) {
	m := aMachine(t)
	want := encoded(t, m)
	s := m.Snapshot()
	var out Outcome
	m.Apply(&Entry{Reign: 1, Elapsed: time.Hour, Commands: []Command{
		{Kind: KindGrant, Key: "new", Lease: time.Second},
		{Kind: KindMember, Member: &Member{ID: "n1", Removed: true}},
		{Kind: KindMember, Member: &Member{ID: "n0"}},
	}}, &out)
	m.Recover(0)
	for range 2 {
		var b bytes.Buffer
		if _, err := s.WriteTo(&b); err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("the snapshot has changed: %v", err)
		}
	}
}

// A faulty file is refused as a whole: cut anywhere, any bit of it flipped, or
// something behind it.
func TestAFaultySnapshotIsRefused(t *testing.T) {
	good := encoded(t, aMachine(t))
	version := len(snapshotMagic)
	refused := func(what string, b []byte, want error) {
		t.Helper()
		if m, err := Read(bytes.NewReader(b)); m != nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	for n := range good {
		refused(fmt.Sprintf("cut to %d bytes", n), good[:n], ErrCorrupt)
	}
	refused("with a byte more", append(bytes.Clone(good), 0), ErrCorrupt)
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			want := ErrCorrupt
			if i == version && b[i] > snapshotVersion {
				want = ErrTooNew
			}
			refused(fmt.Sprintf("bit %d of byte %d flipped", bit, i), b, want)
		}
	}
}

// A sound checksum does not make a state that no machine can be in a sound one.
func TestAnImpossibleStateIsRefused(t *testing.T) {
	grant := func(key string, token uint64) Grant {
		return Grant{Key: key, Token: token, Deadline: 10 * time.Second, Lease: 10 * time.Second}
	}
	tooMany := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("id%03d", i))
		}
		return ids
	}
	for name, c := range map[string]struct {
		change func(s *Snapshot, g []Grant)
		want   error
	}{
		"a possible one":            {func(*Snapshot, []Grant) {}, nil},
		"level 0":                   {func(s *Snapshot, _ []Grant) { s.level = 0 }, ErrCorrupt},
		"a later level":             {func(s *Snapshot, _ []Grant) { s.level = Level + 1 }, ErrTooNew},
		"a quiet period over":       {func(s *Snapshot, _ []Grant) { s.clock.quiet = s.clock.now }, ErrCorrupt},
		"an endless quiet period":   {func(s *Snapshot, _ []Grant) { s.clock.quiet = maxTime }, ErrCorrupt},
		"a time near the end":       {func(s *Snapshot, _ []Grant) { s.clock.now, s.clock.quiet = math.MaxInt64, 0 }, ErrCorrupt},
		"fewer tokens than jumped":  {func(s *Snapshot, _ []Grant) { s.tokens.jumped = s.tokens.last + 1 }, ErrCorrupt},
		"tokens that never began":   {func(s *Snapshot, _ []Grant) { s.tokens.begun = false }, ErrCorrupt},
		"grants though none was":    {func(s *Snapshot, _ []Grant) { s.tokens.used = false }, ErrCorrupt},
		"a grant not granted":       {func(s *Snapshot, g []Grant) { g[0].Token = s.tokens.last + 1 }, ErrCorrupt},
		"token 0":                   {func(_ *Snapshot, g []Grant) { g[0].Token = 0 }, ErrCorrupt},
		"a token twice":             {func(_ *Snapshot, g []Grant) { g[1].Token = g[0].Token }, ErrCorrupt},
		"a key twice":               {func(_ *Snapshot, g []Grant) { g[1].Key = g[0].Key }, ErrCorrupt},
		"a grant of the future":     {func(s *Snapshot, g []Grant) { g[0].Deadline = s.clock.now + g[0].Lease + 1 }, ErrCorrupt},
		"a grant before all time":   {func(_ *Snapshot, g []Grant) { g[0].Deadline = g[0].Lease - 1 }, ErrCorrupt},
		"a member without id":       {func(s *Snapshot, _ []Grant) { s.members.current[0].ID = "" }, ErrCorrupt},
		"a member too long":         {func(s *Snapshot, _ []Grant) { s.members.current[0].Admin = strings.Repeat("a", MaxMemberText+1) }, ErrCorrupt},
		"a member out of order":     {func(s *Snapshot, _ []Grant) { s.members.current = append(s.members.current, Member{ID: "a"}) }, ErrCorrupt},
		"a member twice":            {func(s *Snapshot, _ []Grant) { s.members.current = append(s.members.current, s.members.current[0]) }, ErrCorrupt},
		"a removed member as one":   {func(s *Snapshot, _ []Grant) { s.members.current[0].Removed = true }, ErrCorrupt},
		"a member also removed":     {func(s *Snapshot, _ []Grant) { s.members.removed = append(s.members.removed, "n1") }, ErrCorrupt},
		"an id removed twice":       {func(s *Snapshot, _ []Grant) { s.members.removed = append(s.members.removed, s.members.removed[0]) }, ErrCorrupt},
		"an empty id removed":       {func(s *Snapshot, _ []Grant) { s.members.removed[0] = "" }, ErrCorrupt},
		"too many removed ids":      {func(s *Snapshot, _ []Grant) { s.members.removed = tooMany(MaxRemoved + 1) }, ErrCorrupt},
		"as many as are remembered": {func(s *Snapshot, _ []Grant) { s.members.removed = tooMany(MaxRemoved) }, nil},
		"too many members": {func(s *Snapshot, _ []Grant) {
			s.members.current = nil
			for _, id := range tooMany(MaxMembers + 1) {
				s.members.current = append(s.members.current, Member{ID: id})
			}
		}, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			s := aMachine(t).Snapshot()
			grants := []Grant{grant("a", 1_700_000_000_000_000), grant("b", 1_700_000_000_000_001)}
			c.change(s, grants)
			s.grants = imported(grants)
			var b bytes.Buffer
			if _, err := s.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			if m, err := Read(&b); !errors.Is(err, c.want) || (m == nil) != (c.want != nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// imported returns the grants as a machine has them.
func imported(list []Grant) []*grant {
	var q due.Queue[*grant]
	var all []*grant
	for _, g := range list {
		in := &grant{key: g.Key, owner: g.Owner, lease: g.Lease, holder: g.Holder}
		q.Add(in, g.Deadline, g.Token)
		all = append(all, in)
	}
	return all
}

// A snapshot is written while the machine goes on (what the race detector thinks of
// it counts here).
func TestASnapshotIsWrittenWhileTheMachineGoesOn(t *testing.T) {
	m := begun(t, 1)
	var out Outcome
	e := Entry{Reign: 1}
	for i := range 500 {
		e.Commands = append(e.Commands, Command{Kind: KindGrant, Key: fmt.Sprint("k", i), Lease: time.Duration(1+i%10) * time.Second})
	}
	m.Apply(&e, &out)
	want := encoded(t, m)
	s := m.Snapshot()
	var written bytes.Buffer
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = s.WriteTo(&written) })
	for range 20 {
		e.Elapsed += time.Second
		m.Apply(&e, &out)
	}
	wg.Wait()
	if !bytes.Equal(written.Bytes(), want) {
		t.Error("the snapshot is not that of its moment")
	}
}

// Errors of the reader and the writer come through, and are no verdict on the file.
func TestErrorsOfReaderAndWriterComeThrough(t *testing.T) {
	m := aMachine(t)
	good := encoded(t, m)
	fault := errors.New("disk on fire")
	for n := range len(good) + 1 {
		_, err := Read(io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(fault)))
		if !errors.Is(err, fault) || errors.Is(err, ErrCorrupt) {
			t.Errorf("a reader that fails after %d bytes: %v", n, err)
		}
	}
	if _, err := Read(iotest.OneByteReader(bytes.NewReader(good))); err != nil {
		t.Errorf("byte by byte: %v", err)
	}
	if _, err := m.Snapshot().WriteTo(faultyWriter{fault}); !errors.Is(err, fault) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type faultyWriter struct{ err error }

func (w faultyWriter) Write([]byte) (int, error) { return 0, w.err }

// A few bytes that promise a million grants take no memory for them.
func TestReadingTakesMemoryForWhatIsThere(t *testing.T) {
	s := New().Snapshot()
	head := s.appendHead(nil)
	copy(head[len(head)-4:], "\x00\x10\x00\x00")
	var err error
	if n := allocated(func() { _, err = Read(bytes.NewReader(head)) }); n > 256<<10 || !errors.Is(err, ErrCorrupt) {
		t.Errorf("%d bytes allocated: %v", n, err)
	}
}

// Whatever bytes come, with or without a sound checksum, reading them does not panic;
// what is read is a sound machine, written as the same bytes again.
func FuzzRead(f *testing.F) {
	for _, m := range []*Machine{aMachine(f), begun(f, 1), New()} {
		b := encoded(f, m)
		f.Add(b[:len(b)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		whole := append(bytes.Clone(body), sum[:]...)
		for _, src := range [][]byte{body, whole} {
			m, err := Read(bytes.NewReader(src))
			switch {
			case err == nil:
				if err := m.check(); err != nil {
					t.Error(err)
				}
				if again := encoded(t, m); !bytes.Equal(again, src) {
					t.Errorf("%x is written as %x", src, again)
				}
				e := anEntry()
				m.Apply(&e, &Outcome{})
				decoded(t, encoded(t, m))
			case !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooNew):
				t.Errorf("an error of no class: %v", err)
			}
		}
	})
}
