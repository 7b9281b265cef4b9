package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const rest = " 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0"
	for _, c := range []struct {
		name, stat string
		want       process
		ok         bool
	}{
		{"plain", "42 (sleep) S 7 6 5" + rest, process{42, 7, 6, 5, false}, true},
		{"a name with everything in it", "42 (a) R 1 1 1 (b) S 7 6 5" + rest, process{42, 7, 6, 5, false}, true},
		{"ended", "42 (sleep) Z 7 6 5" + rest, process{42, 7, 6, 5, true}, true},
		{"its first thread ended, others go on", "42 (java) Z 7 6 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 12345 0 0", process{42, 7, 6, 5, false}, true},
		{"cut off", "42 (sleep) S 7", process{}, false},
		{"nothing", "", process{}, false},
	} {
		if got, ok := parseStat(42, []byte(c.stat)); got != c.want || ok != c.ok {
			t.Errorf("%s: got %+v, %v, want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (sleep) S 7 6 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, stat []byte) { parseStat(42, stat) })
}

func TestKin(t *testing.T) {
	all := map[int]process{
		1:  {pid: 1, parent: 0},
		10: {pid: 10, parent: 1},
		11: {pid: 11, parent: 10},
		12: {pid: 12, parent: 11},
		13: {pid: 13, parent: 1},
		20: {pid: 20, parent: 21},
		21: {pid: 21, parent: 20}, // a ring, as a changing table might show
		30: {pid: 30, parent: 99}, // its parent is gone
	}
	for pid, want := range map[int]kinship{10: stranger, 11: descendant, 12: descendant, 13: stranger, 20: stranger, 30: unknown} {
		if got := kin(all, all[pid], 10); got != want {
			t.Errorf("kin of process %d and 10: %v, want %v", pid, got, want)
		}
	}
}

// Without descriptors the table of processes can't be read; that must not be taken
// for an empty one.
func TestATableThatCantBeReadIsNotEmpty(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	seen := (&family{}).look()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if seen.whole || seen.empty() {
		t.Error("nothing could be read, and it is taken for whole")
	}
	if !(&family{}).look().whole {
		t.Error("the table could not be read")
	}
}

// A family is killed by its groups, so that no fork slips through, but not by one that
// others are in.
func TestPickFindsTheFamily(t *testing.T) {
	const self, session = 10, 5
	all := map[int]process{}
	for _, p := range []process{
		{10, 5, 9, session, false}, // run itself
		{11, 10, 11, session, false},
		{12, 11, 12, session, false},
		{13, 12, 13, session, false}, // in a group of its own
		{14, 12, 9, session, false},  // went into run's group
		{15, 12, 30, session, false}, // went into a stranger's group
		{16, 12, 16, 16, false},      // a session of its own
		{17, 1, 12, session, false},  // of the command's group, whoever its parent is
		{18, 10, 12, session, true},
		{19, 10, 19, 19, true},      // a daemon that has ended
		{20, 12, 12, session, true}, // somebody else's to reap
		{21, 10, 21, session, true}, // kept
		{30, 5, 30, session, false},
		{22, 98, 13, session, false}, // its parent ended during the look
		{5, 1, 5, session, false},
		{1, 0, 1, 1, false},
	} {
		all[p.pid] = p
	}
	f := family{group: 12, keep: 21}
	seen := f.pick(all, true, self, session)
	pids := seen.pids()
	slices.Sort(pids)
	slices.Sort(seen.zombies)
	if want := []int{11, 12, 13, 14, 15, 17}; !slices.Equal(pids, want) {
		t.Errorf("running %v, want %v", pids, want)
	}
	if want := []int{18, 19}; !slices.Equal(seen.zombies, want) || !seen.counted {
		t.Errorf("zombies %v, counted %v", seen.zombies, seen.counted)
	}
	for group, want := range map[int]bool{9: true, 30: true, 11: false, 12: false, 13: false} {
		if seen.shared[group] != want {
			t.Errorf("group %d is shared: %v", group, seen.shared[group])
		}
	}
}

// A zombie of the session may have started what the look did not see; one of a daemon
// may not.
func TestAZombieOfTheSessionIsNotNothing(t *testing.T) {
	f := family{group: 12}
	self := process{10, 5, 9, 5, false}
	if f.pick(map[int]process{10: self, 18: {18, 10, 12, 5, true}}, true, 10, 5).empty() {
		t.Error("a zombie is taken for nothing")
	}
	if !f.pick(map[int]process{10: self, 19: {19, 10, 19, 19, true}}, true, 10, 5).empty() {
		t.Error("a daemon's zombie is taken for one of the job")
	}
}

// Whose session began outside the PID namespace has session and group 0, as kernel
// threads and init have: a group that is not known, or gone, is not theirs.
func TestAnUnknownGroupIsNobodys(t *testing.T) {
	all := map[int]process{
		1:  {1, 0, 0, 0, false},
		2:  {2, 0, 0, 0, false},
		10: {10, 1, 0, 0, false},
		30: {30, 1, 0, 0, false},
	}
	if seen := (&family{}).pick(all, true, 10, 0); !seen.empty() {
		t.Errorf("running %v", seen.pids())
	}
}

func TestTheMessageNamesFewProcesses(t *testing.T) {
	pids := make([]int, 1000)
	if text := leftOver("k", pids, advice{}).Error(); !strings.Contains(text, "and 990 more") || len(text) > 200 {
		t.Errorf("%s", text)
	}
}

// Where the kernel lists children, they are found without looking at anybody else.
func TestReadBelowFollowsTheListsOfChildren(t *testing.T) {
	proc := t.TempDir()
	put := func(pid, parent, group int, children ...string) {
		for i, list := range children {
			folder := filepath.Join(proc, strconv.Itoa(pid), "task", strconv.Itoa(pid+1000*i))
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "children"), []byte(list), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		stat := fmt.Sprintf("%d (x) S %d %d 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 0 0", pid, parent, group)
		if err := os.WriteFile(filepath.Join(proc, strconv.Itoa(pid), "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(10, 5, 9, "11 ", "12 13 ") // of two threads
	put(11, 10, 11, "")
	put(12, 10, 12, "14 99 ") // 99 has ended
	put(13, 10, 30, "")       // in a group that somebody else may have made
	put(14, 12, 12, "10 ")    // a ring, as a torn list might show
	put(40, 1, 40, "")
	below, ok := readBelow(proc, 10)
	pids := slices.Sorted(maps.Keys(below))
	if want := []int{10, 11, 12, 13, 14}; !ok || !slices.Equal(pids, want) {
		t.Fatalf("%v, %v, want %v", pids, ok, want)
	}
	f := family{group: 12}
	if f.knows(below, f.pick(below, false, 10, 5)) {
		t.Error("a stranger's group is taken for known")
	}
	delete(below, 13)
	seen := f.pick(below, false, 10, 5)
	if !f.knows(below, seen) || len(seen.running) != 3 {
		t.Errorf("%+v", seen)
	}
	if seen.empty() || f.pick(map[int]process{}, false, 10, 5).empty() {
		t.Error("lists of children are taken for proof")
	}
	if _, ok := readBelow(t.TempDir(), 10); ok {
		t.Error("nothing could be read, and it is taken for all")
	}
}
