package lock

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The machine does what the naive one does, whatever entries, restores and
// recoveries come. A replica that takes the same entries from their encoding is equal
// after every one of them, even when it began from a snapshot in between. And the
// token counter never falls.
func TestMachineAgreesWithANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]uint64{1, 1000, math.MaxUint64 - 40}).Draw(t, "first")
		model, machine, replica := newNaive(), New(), New()
		file, fileModel := encoded(t, machine), model.clone()
		var out, other Outcome
		var read Entry
		var granted uint64 // the highest token

		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				e := drawEntry(t, machine, first)
				machine.Apply(&e, &out)
				if err := DecodeEntry(AppendEntry(nil, &e), &read); err != nil || !reflect.DeepEqual(withoutNil(&read), withoutNil(&e)) {
					t.Fatalf("decoded %+v of %+v: %v", read, e, err)
				}
				replica.Apply(&read, &other)

				want := model.apply(&e)
				if !slices.Equal(out.Results, want) || out.Reign != uint64(len(model.reigns)) {
					t.Fatalf("reign %d, results %v, want %d, %v", out.Reign, out.Results, len(model.reigns), want)
				}
				if err := model.report(out.Ended, len(e.Commands)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(out.Results, other.Results) || !slices.Equal(out.Ended, other.Ended) {
					t.Fatalf("replicas differ:\n%v\n%v", out, other)
				}
				for _, r := range out.Results {
					if r.Status == Granted && r.Token <= granted {
						t.Fatalf("token %d is granted after %d", r.Token, granted)
					}
					granted = max(granted, r.Token)
				}
			},
			"replace the replica by one from a snapshot": func(t *rapid.T) {
				replica = decoded(t, encoded(t, machine))
			},
			"save to a file": func(t *rapid.T) {
				file, fileModel = encoded(t, machine), model.clone()
			},
			"restore the file": func(t *rapid.T) {
				machine.Adopt(decoded(t, file))
				replica.Adopt(decoded(t, file))
				model.adopt(fileModel.clone())
			},
			"recover": func(t *rapid.T) {
				quiet := time.Duration(rapid.IntRange(0, 3).Draw(t, "quiet")) * time.Second
				machine.Recover(quiet)
				replica.Recover(quiet)
				model.recover(quiet)
			},
			"": func(t *rapid.T) {
				if err := machine.check(); err != nil {
					t.Fatal(err)
				}
				if Digest(machine) != Digest(replica) {
					t.Fatal("replicas that applied the same entries differ")
				}
				checkViews(t, machine, model)
			},
		})
	})
}

func withoutNil(e *Entry) Entry {
	c := *e
	c.Commands = append([]Command{}, e.Commands...)
	return c
}

func checkViews(t *rapid.T, m *Machine, model *naive) {
	if m.Now() != model.now || m.Reign() != uint64(len(model.reigns)) || m.Level() != model.level {
		t.Fatalf("time %v, reign %d, level %d, want %v, %d, %d", m.Now(), m.Reign(), m.Level(), model.now, len(model.reigns), model.level)
	}
	if until, quiet := m.QuietUntil(); quiet != (model.quiet > 0) || quiet && until != model.now+model.quiet {
		t.Fatalf("quiet until %v %v, want %v more after %v", until, quiet, model.quiet, model.now)
	}
	next := model.token + 1
	if !model.begun {
		next = 0
	}
	if m.Next() != next || m.Fresh() != model.fresh {
		t.Fatalf("the next token is %d, fresh %v, want %d, %v", m.Next(), m.Fresh(), next, model.fresh)
	}
	if want := len(model.current) + len(model.ended); m.Len() != want || len(m.Grants()) != want {
		t.Fatalf("%d in the table, want %d", m.Len(), want)
	}
	for _, key := range someKeys {
		g, ok := m.Current(key)
		if want, wantOK := model.current[key]; g != want || ok != wantOK {
			t.Fatalf("current grant of %s: %v %v, want %v %v", key, g, ok, want, wantOK)
		}
	}
	if !slices.Equal(m.Members(), model.list()) {
		t.Fatalf("members %v, want %v", m.Members(), model.list())
	}
	checkNextDeadline(t, m, model)
}

func checkNextDeadline(t *rapid.T, m *Machine, model *naive) {
	var all []time.Duration
	if model.quiet > 0 {
		all = append(all, model.now+model.quiet)
	}
	for _, g := range slices.AppendSeq(slices.Collect(maps.Values(model.current)), maps.Values(model.ended)) {
		all = append(all, g.Deadline)
	}
	var want time.Duration
	if len(all) > 0 {
		want = slices.Min(all)
	}
	if next, ok := m.NextDeadline(); ok != (len(all) > 0) || next != want {
		t.Fatalf("the next deadline is %v %v, want %v of %d", next, ok, want, len(all))
	}
}

var (
	someKeys    = []string{"a", "b", "c", "d", "many0", "many1", "many300"}
	someMembers = []string{"", "n1", "n2", "n3", "n4"}
)

// drawEntry draws an entry: often at the very time at which a lease ends or a
// moment before, now and then of an older reign, of one that never was, beginning a
// new one, or with more grants than one entry takes out when they end.
func drawEntry(t *rapid.T, m *Machine, first uint64) Entry {
	e := Entry{Reign: m.Reign(), Elapsed: m.Elapsed()}
	if next, ok := m.NextDeadline(); ok && rapid.Bool().Draw(t, "at a deadline") {
		e.Elapsed += next - m.Now() - rapid.SampledFrom([]time.Duration{0, 1}).Draw(t, "before it")
	} else {
		e.Elapsed += time.Duration(rapid.Int64Range(-1, 4).Draw(t, "seconds")) * time.Second
	}
	e.Elapsed = max(e.Elapsed, 0)
	switch rapid.IntRange(0, 9).Draw(t, "reign") {
	case 9, 8:
		e.First = first + rapid.Uint64Range(0, 20).Draw(t, "later")
		e.Elapsed = time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "elapsed"))
	case 7:
		e.Reign -= min(e.Reign, 1)
	case 6:
		e.Reign++
	}

	for range rapid.IntRange(0, 5).Draw(t, "commands") {
		e.Commands = append(e.Commands, drawCommand(t, m))
	}
	if rapid.IntRange(0, 9).Draw(t, "many") == 9 {
		for i := range MaxEnded + 50 {
			e.Commands = append(e.Commands, Command{Kind: KindGrant, Key: fmt.Sprintf("many%d", i), Lease: time.Second})
		}
	}
	return e
}

func drawCommand(t *rapid.T, m *Machine) Command {
	key := rapid.SampledFrom(someKeys).Draw(t, "key")
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 9:
		return Command{Kind: KindMember, Member: &Member{
			ID:      rapid.SampledFrom(someMembers).Draw(t, "id"),
			Client:  rapid.SampledFrom([]string{"", "host:5225"}).Draw(t, "client"),
			Admin:   rapid.SampledFrom([]string{"", "host:5280"}).Draw(t, "admin"),
			Removed: rapid.IntRange(0, 3).Draw(t, "removed") == 3,
		}}
	case kind == 8:
		return Command{Kind: KindLevel, Level: rapid.Uint32Range(0, Level).Draw(t, "level")}
	case kind >= 4:
		return Command{
			Kind: KindGrant, Key: key,
			Owner:  rapid.Uint64().Draw(t, "owner"),
			Lease:  time.Duration(rapid.Int64Range(1, 5).Draw(t, "lease")) * time.Second,
			Holder: rapid.SampledFrom([]string{"", "cron@db1"}).Draw(t, "holder"),
		}
	}
	c := Command{Kind: KindRelease, Key: key, Token: rapid.Uint64Range(0, 5).Draw(t, "token")}
	if g, ok := m.grants[key]; ok && rapid.IntRange(0, 3).Draw(t, "exact token") > 0 {
		c.Token = g.token()
	}
	return c
}

func TestAnUnknownCommandPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New().Apply(&Entry{Commands: []Command{{Kind: 99}}}, &Outcome{})
}

// Whatever a leader's clock says, the machine's time stops before it overflows, and
// a lease still ends after its beginning.
func TestTimeNeverOverflows(t *testing.T) {
	m := begun(t, 1)
	var out Outcome
	for range 4 {
		m.Apply(&Entry{First: 1}, &out)
		m.Apply(&Entry{Reign: out.Reign, Elapsed: math.MaxInt64}, &out)
	}
	m.Recover(math.MaxInt64)
	if until, quiet := m.QuietUntil(); !quiet || until <= m.Now() {
		t.Errorf("quiet until %v %v at %v", until, quiet, m.Now())
	}
	m.Recover(0)
	m.Apply(&Entry{Reign: out.Reign, Commands: []Command{{Kind: KindGrant, Key: "a", Lease: maxLease}}}, &out)
	if g, ok := m.Current("a"); !ok || g.Deadline <= m.Now() {
		t.Errorf("the lease ends at %v %v, now is %v", g.Deadline, ok, m.Now())
	}
	decoded(t, encoded(t, m))
}
