package lock

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// anEntry has every kind of command and every field.
func anEntry() Entry {
	return Entry{First: 1_700_000_000_000_000, Reign: 7, Elapsed: 90 * time.Second, Commands: []Command{
		{Kind: KindGrant, Key: "order-42", Owner: math.MaxUint64, Lease: 30 * time.Second, Holder: "cron@db1"},
		{Kind: KindGrant, Key: "é", Lease: 1},
		{Kind: KindRelease, Key: "order-41", Token: 1_700_000_000_000_001},
		{Kind: KindMember, Member: &Member{ID: "n1", Client: "n1.example:5225", Admin: "n1.example:5280"}},
		{Kind: KindMember, Member: &Member{ID: "n2", Removed: true}},
		{Kind: KindLevel, Level: 1},
	}}
}

// golden returns the bytes of a file under testdata. They are what a released version
// wrote into logs and snapshots, so that they never change: a new form gets a file of
// its own beside them.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A later version reads the entries of this one, and writes them for followers that
// are not upgraded yet.
func TestEntriesReadForEver(t *testing.T) {
	want := golden(t, "entry_v1.hex")
	e := anEntry()
	if got := AppendEntry(nil, &e); !bytes.Equal(got, want) {
		t.Errorf("the entry is written as\n%x, want\n%x", got, want)
	}
	var read Entry
	if err := DecodeEntry(want, &read); err != nil || !reflect.DeepEqual(read, e) {
		t.Errorf("the entry is read as %+v: %v", read, err)
	}
}

// An entry keeps nothing of the bytes that it was decoded from, nor of the entry
// decoded before it.
func TestADecodedEntryStandsAlone(t *testing.T) {
	full, other := anEntry(), Entry{Reign: 7, Commands: []Command{{Kind: KindRelease, Key: "b", Token: 1}, {Kind: KindGrant, Key: "c", Lease: 1}}}
	src := AppendEntry([]byte("before"), &full)[len("before"):]
	var e Entry
	if err := DecodeEntry(src, &e); err != nil {
		t.Fatal(err)
	}
	clear(src)
	if !reflect.DeepEqual(e, full) {
		t.Errorf("with its source overwritten the entry is %+v", e)
	}
	if err := DecodeEntry(AppendEntry(nil, &other), &e); err != nil || !reflect.DeepEqual(e, other) {
		t.Errorf("after another one the entry is %+v: %v", e, err)
	}
}

// A node that can't decode a committed entry must stop. Why, it can tell: bytes of a
// newer version are not corrupt.
func TestWhatAnEntryCantBe(t *testing.T) {
	head := AppendEntry(nil, &Entry{})
	head = head[:len(head)-4]
	with := func(count byte, commands string) []byte {
		return append(append(bytes.Clone(head), 0, 0, 0, count), commands...)
	}
	zeros := strings.Repeat("\x00", 8)
	grant := func(key, lease, holder string) []byte { return with(1, "\x01"+key+zeros+lease+holder) }
	for name, c := range map[string]struct {
		src  []byte
		want error
	}{
		"nothing":                     {nil, ErrCorrupt},
		"form 0":                      {[]byte{0}, ErrCorrupt},
		"a later form":                {[]byte{2}, ErrTooNew},
		"no commands":                 {with(0, ""), nil},
		"a negative time":             {bytes.Replace(with(0, ""), []byte(zeros+zeros+"\x00"), []byte(zeros+zeros+"\x80"), 1), ErrCorrupt},
		"more than there is":          {with(1, ""), ErrCorrupt},
		"bytes behind the last":       {with(0, "x"), ErrCorrupt},
		"kind 0":                      {with(1, "\x00\x00\x00\x00\x00"), ErrCorrupt},
		"a later kind":                {with(1, "\x05\x00\x00\x00\x00"), ErrTooNew},
		"a later kind at the end":     {with(2, "\x04\x00\x00\x00\x01\x05????"), ErrTooNew},
		"a known level":               {with(1, "\x04\x00\x00\x00\x01"), nil},
		"a later level":               {with(1, "\x04\x00\x00\x00\x02"), ErrTooNew},
		"a grant":                     {grant("\x01a", zeros, "\x00"), nil},
		"the longest key":             {grant("\x80"+strings.Repeat("k", MaxKey), zeros, "\x00"), nil},
		"a longer key":                {grant("\x81"+strings.Repeat("k", MaxKey+1), zeros, "\x00"), ErrCorrupt},
		"the longest holder":          {grant("\x01a", zeros, "\x40"+strings.Repeat("h", MaxHolder)), nil},
		"a longer holder":             {grant("\x01a", zeros, "\x41"+strings.Repeat("h", MaxHolder+1)), ErrCorrupt},
		"a lease of 200 years":        {grant("\x01a", "\x60"+zeros[1:], "\x00"), ErrCorrupt},
		"a member neither in nor out": {with(1, "\x03\x02\x00\x01n\x00\x00\x00\x00"), ErrCorrupt},
		"a member cut short":          {with(1, "\x03\x00\x00\x01n\x00\x00\x00"), ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			if err := DecodeEntry(c.src, &Entry{}); !errors.Is(err, c.want) {
				t.Errorf("%x: %v, want %v", c.src, err, c.want)
			}
		})
	}
	full := anEntry()
	src := AppendEntry(nil, &full)
	for n := range src {
		if err := DecodeEntry(src[:n], &Entry{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

// What no node could decode never comes into a log.
func TestWhatCantBeDecodedIsNotEncoded(t *testing.T) {
	for name, e := range map[string]Entry{
		"negative time":   {Elapsed: -1},
		"no kind":         {Commands: []Command{{}}},
		"unknown kind":    {Commands: []Command{{Kind: KindLevel + 1}}},
		"unknown level":   {Commands: []Command{{Kind: KindLevel, Level: Level + 1}}},
		"long key":        {Commands: []Command{{Kind: KindRelease, Key: strings.Repeat("k", MaxKey+1)}}},
		"long holder":     {Commands: []Command{{Kind: KindGrant, Key: "a", Holder: strings.Repeat("h", MaxHolder+1)}}},
		"negative lease":  {Commands: []Command{{Kind: KindGrant, Key: "a", Lease: -1}}},
		"endless lease":   {Commands: []Command{{Kind: KindGrant, Key: "a", Lease: math.MaxInt64}}},
		"no member":       {Commands: []Command{{Kind: KindMember}}},
		"member too long": {Commands: []Command{{Kind: KindMember, Member: &Member{ID: strings.Repeat("n", 1<<16)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is encoded")
				}
			}()
			AppendEntry(nil, &e)
		})
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A few bytes that promise four billion commands take no memory for them.
func TestDecodingTakesMemoryForWhatIsThere(t *testing.T) {
	src := AppendEntry(nil, &Entry{})
	copy(src[len(src)-4:], "\xff\xff\xff\xff")
	var err error
	if n := allocated(func() { err = DecodeEntry(src, &Entry{}) }); n > 64<<10 || !errors.Is(err, ErrCorrupt) {
		t.Errorf("%d bytes allocated: %v", n, err)
	}
}

// Every node decodes every command: of an entry like the one before only keys,
// holders and members are allocated.
func TestDecodingAllocatesTextsOnly(t *testing.T) {
	e := Entry{Reign: 1, Commands: []Command{
		{Kind: KindRelease, Key: "order-41", Token: 1},
		{Kind: KindGrant, Key: "order-42", Lease: 1, Holder: "cron@db1"},
		{Kind: KindGrant, Key: "order-43", Lease: 1},
	}}
	src := AppendEntry(nil, &e)
	var err error
	if n := testing.AllocsPerRun(100, func() { err = DecodeEntry(src, &e) }); n != 4 || err != nil {
		t.Errorf("%v allocations for 3 keys and a holder: %v", n, err)
	}
}

// Whatever bytes come, decoding them does not panic, and what is decoded is encoded
// to the same bytes again.
func FuzzDecodeEntry(f *testing.F) {
	full := anEntry()
	f.Add(AppendEntry(nil, &full))
	f.Add(AppendEntry(nil, &Entry{}))
	f.Add([]byte{2, 0})
	var e Entry
	f.Fuzz(func(t *testing.T, src []byte) {
		err := DecodeEntry(src, &e)
		switch {
		case err == nil:
			if again := AppendEntry(nil, &e); !bytes.Equal(again, src) {
				t.Errorf("%x is encoded as %x", src, again)
			}
			m := New()
			m.Apply(&e, &Outcome{})
			decoded(t, encoded(t, m))
		case !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooNew):
			t.Errorf("an error of no class: %v", err)
		}
	})
}
