package replica

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// testSegment is small enough for a few batches to fill a segment, in bytes.
const testSegment = 2 << 10

var errDisk = errors.New("no space left on device")

// fault is how one operation of the disk fails.
type fault struct {
	done  int  // 0: nothing of it is done, 1: half, 2: all
	crash bool // nothing after it is done either
	power bool // what was not synced is lost
}

func (f fault) String() string {
	s := [...]string{"refused", "half done", "done and failed"}[f.done]
	if f.crash {
		s += ", then a crash"
	}
	if f.power {
		s += ", then a power cut"
	}
	return s
}

// faultyDisk is a real folder, and metadata in memory, whose n-th operation fails. What
// was not synced can be lost. As long as one operation is under way at a time, its number
// is the same in every run.
type faultyDisk struct {
	types.VFS
	dir string

	mu       sync.Mutex
	meta     types.PersistentState
	failAt   int // 0: never
	how      fault
	ops      int
	dead     bool
	unsynced map[string][]func() // per file: what a power cut undoes
}

func newFaultyDisk(t *testing.T) *faultyDisk {
	return &faultyDisk{VFS: fs.New(), dir: t.TempDir(), unsynced: map[string][]func(){}}
}

// arm has the n-th operation from now on fail.
func (d *faultyDisk) arm(n int, how fault) { d.failAt, d.how, d.ops, d.dead = n, how, 0, false }

// op does an operation, or fails.
func (d *faultyDisk) op(half, all func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDisk
	}
	d.ops++
	if d.ops != d.failAt {
		return all()
	}
	d.dead = d.how.crash
	switch {
	case d.how.done == 1 && half != nil:
		return errors.Join(half(), errDisk)
	case d.how.done == 2:
		return errors.Join(all(), errDisk)
	}
	return errDisk
}

// cutPower undoes what was not synced.
func (d *faultyDisk) cutPower() {
	for _, undo := range d.unsynced {
		for _, u := range slices.Backward(undo) {
			u()
		}
	}
	clear(d.unsynced)
}

func (d *faultyDisk) Create(dir, name string, size uint64) (f types.WritableFile, err error) {
	create := func(size uint64) error {
		f, err = d.VFS.Create(dir, name, size)
		d.unsynced[name] = append(d.unsynced[name], func() { os.Remove(filepath.Join(dir, name)) })
		return err
	}
	// What a full disk leaves is an empty file.
	if err := d.op(func() error { return create(0) }, func() error { return create(size) }); err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return faultyFile{f, d, name}, nil
}

func (d *faultyDisk) OpenWriter(dir, name string) (f types.WritableFile, err error) {
	err = d.op(nil, func() error { f, err = d.VFS.OpenWriter(dir, name); return err })
	return faultyFile{f, d, name}, err
}

func (d *faultyDisk) OpenReader(dir, name string) (f types.ReadableFile, err error) {
	err = d.op(nil, func() error { f, err = d.VFS.OpenReader(dir, name); return err })
	return f, err
}

func (d *faultyDisk) Delete(dir, name string) error {
	return d.op(nil, func() error { delete(d.unsynced, name); return os.Remove(filepath.Join(dir, name)) })
}

type faultyFile struct {
	types.WritableFile
	disk *faultyDisk
	name string
}

func (f faultyFile) WriteAt(b []byte, at int64) (n int, err error) {
	path := filepath.Join(f.disk.dir, f.name)
	write := func(b []byte) error {
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f.disk.unsynced[f.name] = append(f.disk.unsynced[f.name], func() {
			if err := os.WriteFile(path, before, 0o600); err != nil {
				panic(err)
			}
		})
		n, err = f.WritableFile.WriteAt(b, at)
		return err
	}
	err = f.disk.op(func() error { return write(b[:len(b)/2]) }, func() error { return write(b) })
	return n, err
}

// Sync makes the file last. The real one's cost is spared.
func (f faultyFile) Sync() error {
	return f.disk.op(nil, func() error { delete(f.disk.unsynced, f.name); return nil })
}

// Load, CommitState and the rest make the disk a types.MetaStore.
func (d *faultyDisk) Load(string) (types.PersistentState, error) { return d.meta, nil }

func (d *faultyDisk) CommitState(s types.PersistentState) error {
	return d.op(nil, func() error { s.Segments = slices.Clone(s.Segments); d.meta = s; return nil })
}

func (d *faultyDisk) GetStable([]byte) ([]byte, error) { return nil, nil }
func (d *faultyDisk) SetStable(_, _ []byte) error      { return nil }
func (d *faultyDisk) Close() error                     { return nil }

func (d *faultyDisk) open() (*frailLog, error) {
	log, err := openLog(d.dir, testSegment, d, d, hclog.NewNullLogger())
	if err != nil {
		return nil, err
	}
	return &frailLog{WAL: log}, nil
}

// contents is what a log has, by index.
type contents map[uint64]string

func (c contents) bounds() (first, last uint64) {
	for i := range c {
		if first == 0 || i < first {
			first = i
		}
		last = max(last, i)
	}
	return first, last
}

func (c contents) without(first, last uint64) contents {
	c = maps.Clone(c)
	maps.DeleteFunc(c, func(i uint64, _ string) bool { return first <= i && i <= last })
	return c
}

// read reads a whole log.
func read(log raft.LogStore) (contents, error) {
	c := contents{}
	first, err := log.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := log.LastIndex()
	if err != nil || last == 0 {
		return c, err
	}
	for i := first; i <= last; i++ {
		var entry raft.Log
		if err := log.GetLog(i, &entry); err != nil {
			return nil, fmt.Errorf("entry %d of %d to %d: %w", i, first, last, err)
		}
		if entry.Index != i {
			return nil, fmt.Errorf("entry %d is entry %d", i, entry.Index)
		}
		c[i] = string(entry.Data)
	}
	return c, nil
}

// use changes a log as raft does, and returns what must be in it and what may be instead,
// should the last change have failed.
func use(log *frailLog, has contents, rng *rand.Rand, changes int) (sure, perhaps contents, err error) {
	for range changes {
		first, last := has.bounds()
		next := maps.Clone(has)
		switch kind := rng.IntN(8); {
		case kind == 0 && last > 0: // a snapshot was made
			upTo := first + rng.Uint64N(last-first+1)
			next = has.without(first, upTo)
			err = log.DeleteRange(first, upTo)
		case kind == 1 && last > first: // another leader's entries replace these
			from := last - rng.Uint64N(min(6, last-first))
			next = has.without(from, last)
			err = log.DeleteRange(from, last)
		case kind == 2 && last > 0: // a snapshot was installed
			next = contents{}
			if err = log.DeleteRange(first, last); err != nil {
				break
			}
			has, next = next, contents{last + 10: "after the snapshot"}
			err = log.StoreLog(&raft.Log{Index: last + 10, Data: []byte("after the snapshot")})
		default:
			var batch []*raft.Log
			for range 1 + rng.IntN(5) {
				last++
				next[last] = fmt.Sprint(last, strings.Repeat("x", rng.IntN(200)))
				batch = append(batch, &raft.Log{Index: last, Data: []byte(next[last])})
			}
			err = log.StoreLogs(batch)
		}
		if err != nil {
			return has, next, err
		}
		has = next
		// A change of nothing waits for the change of the segment, whose operations would
		// come in another order in each run.
		if err := log.DeleteRange(1<<60, 1<<60); err != nil {
			return has, has, err
		}
	}
	return has, has, nil
}

// Whichever operation of the disk fails, and however: a log that is opened again has
// every entry that was acknowledged, takes new ones, and what it shows then lasts.
func TestALogComesBackFromEveryFaultOfTheDisk(t *testing.T) {
	const (
		seed    = 36
		changes = 16 // with this seed, each kind is among them
	)
	total := 1
	for n := 0; n <= total; n++ {
		for i := range 12 {
			how := fault{done: i % 3, crash: i/3%2 == 1, power: i/6 == 1}
			disk := newFaultyDisk(t)
			if err := comeBack(disk, n, how, rand.New(rand.NewPCG(seed, 0)), changes); err != nil {
				t.Fatalf("seed %d, operation %d %s: %v", seed, n, how, err)
			}
			os.RemoveAll(disk.dir)
			if n == 0 { // no fault: this run counts the operations
				total = disk.ops
				break
			}
		}
	}
	t.Logf("%d operations", total)
}

// comeBack uses a log until the n-th operation fails, or never for 0, and then looks at
// what is left.
func comeBack(disk *faultyDisk, n int, how fault, rng *rand.Rand, changes int) error {
	disk.arm(n, how)
	sure, perhaps := contents{}, contents{}
	log, err := disk.open()
	if err == nil {
		sure, perhaps, err = use(log, sure, rng, changes)
		log.Close()
	}
	if n == 0 {
		return err
	}
	lose := func() {
		if how.power {
			disk.cutPower()
		}
	}
	lose()

	// The disk may fail while the log is mended, too.
	disk.arm(1+n%8, how)
	if log, err := disk.open(); err == nil {
		log.Close()
	}
	lose()

	disk.arm(0, fault{})
	if log, err = disk.open(); err != nil {
		return fmt.Errorf("open it again: %w", err)
	}
	shown, err := read(log)
	if err != nil {
		return err
	}
	if !maps.Equal(shown, sure) && !maps.Equal(shown, perhaps) {
		return fmt.Errorf("it has %v; %v were acknowledged, %v is possible", slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(sure)), slices.Sorted(maps.Keys(perhaps)))
	}
	log.Close()
	disk.cutPower()

	if log, err = disk.open(); err != nil {
		return fmt.Errorf("open it after a power cut: %w", err)
	}
	if lasting, err := read(log); err != nil || !maps.Equal(lasting, shown) {
		return fmt.Errorf("after a power cut it has %v, not %v: %w", slices.Sorted(maps.Keys(lasting)), slices.Sorted(maps.Keys(shown)), err)
	}
	want, _, err := use(log, shown, rng, changes)
	if err != nil {
		return fmt.Errorf("use it again: %w", err)
	}
	log.Close()
	if log, err = disk.open(); err != nil {
		return fmt.Errorf("open it a last time: %w", err)
	}
	defer log.Close()
	if got, err := read(log); err != nil || !maps.Equal(got, want) {
		return fmt.Errorf("at last it has %v, not %v: %w", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), err)
	}
	return nil
}

// fillSegment stores batches until the log's segment is full and returns the last index. The
// change to the next segment may not have happened yet.
func fillSegment(t *testing.T, log raft.LogStore) (last uint64) {
	t.Helper()
	data := make([]byte, 1<<20)
	for stored := 0; stored < segmentSize; stored += len(data) {
		last++
		if err := log.StoreLog(&raft.Log{Index: last, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// Stores that are closed right after the write that filled a segment can be opened and
// written again, with the metadata as raft-wal keeps it.
func TestStoresClosedWithAFullSegmentComeBack(t *testing.T) {
	dir := t.TempDir()
	last := uint64(0)
	for range 3 {
		stores, err := openStores(dir, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := stores.Log.LastIndex(); got != last || err != nil {
			t.Fatalf("the last entry is %d, not %d; %v", got, last, err)
		}
		if last == 0 {
			last = fillSegment(t, stores.Log)
		} else {
			last++
			if err := stores.Log.StoreLog(&raft.Log{Index: last, Data: []byte("one more")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := stores.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Opening that failed doesn't keep the metadata locked: the next try would wait for ever.
func TestStoresThatDidNotOpenCanBeOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	misnamed := filepath.Join(dir, "log", "misnamed.wal") // wal.Open refuses it
	if err := os.MkdirAll(filepath.Dir(misnamed), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(misnamed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStores(dir, hclog.NewNullLogger()); !errors.Is(err, wal.ErrCorrupt) {
		t.Fatal(err)
	}
	if err := os.Remove(misnamed); err != nil {
		t.Fatal(err)
	}
	stores, err := openStores(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if err := stores.Close(); err != nil {
		t.Error(err)
	}
}

// A first batch that was cut off leaves nothing: neither an index that says that the
// segment is full, nor a file that lacks the space that is set aside.
func TestATornFirstBatchLeavesNothing(t *testing.T) {
	for _, kept := range []int64{0, 100, 3 * testSegment, -8} {
		disk := newFaultyDisk(t)
		log, err := disk.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := log.StoreLog(&raft.Log{Index: 1, Data: make([]byte, 4*testSegment)}); err != nil {
			t.Fatal(err)
		}
		log.Close()
		// The change to the next segment did not happen, nor the end of the write.
		disk.meta.Segments = disk.meta.Segments[:1]
		disk.meta.Segments[0].SealTime = time.Time{}
		path := filepath.Join(disk.dir, segment.FileName(disk.meta.Segments[0]))
		file, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if kept < 0 {
			kept += file.Size()
		}
		if err := os.Truncate(path, kept); err != nil {
			t.Fatal(err)
		}
		if log, err = disk.open(); err != nil {
			t.Fatal(err)
		}
		if file, err = os.Stat(path); err != nil || file.Size() != testSegment {
			t.Errorf("%d bytes kept: %d bytes are set aside, %v", kept, file.Size(), err)
		}
		if err := log.StoreLog(&raft.Log{Index: 1, Data: []byte("entry")}); err != nil {
			t.Errorf("%d bytes kept: %v", kept, err)
		}
		log.Close()
	}
}

// A byte that changed in the middle of the last segment is no write that was cut off:
// what comes after it was acknowledged, and is not wiped.
func TestAChangedLogIsRefused(t *testing.T) {
	disk := newFaultyDisk(t)
	log, err := disk.open()
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if err := log.StoreLog(&raft.Log{Index: i + 1, Data: []byte("entry")}); err != nil {
			t.Fatal(err)
		}
	}
	log.Close()
	path := filepath.Join(disk.dir, segment.FileName(disk.meta.Segments[0]))
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, strings.Index(string(sound), "entry")} {
		bad := slices.Clone(sound)
		bad[at]++
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.open(); !errors.Is(err, types.ErrCorrupt) {
			t.Errorf("byte %d changed: %v", at, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(bad) {
			t.Errorf("byte %d changed: the file was written; %v", at, err)
		}
	}
}

// Reading a segment copes with any bytes, and what it takes for whole is what it takes
// for whole without the rest.
func FuzzReadBatches(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 100))
	f.Add([]byte("\x0d\x6b\xeb\x58\x00\x00\x00\x00aaaaaaaabbbbbbbbcccccccc\x01\x00\x00\x00\x05\x00\x00\x00entry\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := readBatches(strings.NewReader(string(file)))
		if err != nil && !errors.Is(err, types.ErrCorrupt) {
			t.Fatal(err)
		}
		if got.end > int64(len(file)) {
			t.Fatalf("%d bytes of %d", got.end, len(file))
		}
		if again, err := readBatches(io.NewSectionReader(strings.NewReader(string(file)), 0, got.end)); again != got || err != nil {
			t.Fatalf("%+v, then %+v, %v", got, again, err)
		}
	})
}
