package coretest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

var (
	errCrashed = errors.New("the process is gone")
	errBroken  = errors.New("the log is broken since the disk was full")
)

// Disk is what one node has on disk: a log, raft's few values, and snapshots. What a store
// has returned from is kept by a crash; of a write that was under way then, a beginning may
// be. Stores are opened for one run of the node and do nothing any more after a crash.
type Disk struct {
	mu     sync.Mutex
	random *rand.Rand
	run    int // raised by a crash: stores of earlier runs are dead
	opened int // how many have it open

	log       map[uint64]raft.Log
	first     uint64 // 0 without entries
	last      uint64
	values    map[string][]byte
	note      []byte
	snapshots []*storedSnapshot // newest first

	writing map[*write]struct{}
	slow    time.Duration
	hanging chan struct{} // closed when the disk answers again; nil while it does
	full    bool
	stored  func(l *raft.Log) // told of each entry that is kept, under mu
	saved   func(index uint64, content []byte)
}

// write is a write of the log that has begun.
type write struct {
	logs    []*raft.Log
	crashed chan struct{}
}

// NewDisk returns an empty disk, whose accidents follow from the seed.
func NewDisk(seed uint64) *Disk {
	return &Disk{
		random:  rand.New(rand.NewPCG(seed, 2)),
		log:     make(map[uint64]raft.Log),
		values:  make(map[string][]byte),
		writing: make(map[*write]struct{}),
	}
}

// Crash is the end of the process: nothing that it writes from now on is kept. Of each
// write that was under way, a beginning of any length is.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run++
	d.opened = 0
	for w := range d.writing {
		for _, l := range w.logs[:d.random.IntN(len(w.logs)+1)] {
			if err := d.keep(l); err != nil {
				break
			}
		}
		close(w.crashed)
		delete(d.writing, w)
	}
	d.answer()
}

// Slow makes each write of the log take so long.
func (d *Disk) Slow(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = delay
}

// Hang lets every write wait until Answer, without an error.
func (d *Disk) Hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hanging == nil {
		d.hanging = make(chan struct{})
	}
}

// Answer ends Hang.
func (d *Disk) Answer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer()
}

func (d *Disk) answer() {
	if d.hanging != nil {
		close(d.hanging)
		d.hanging = nil
	}
}

// SetFull makes writes of the log and of snapshots fail for want of room, or ends that.
// A log store that has met a full disk stays broken until it is opened anew, as the real
// one does.
func (d *Disk) SetFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// HasRoom says whether the disk is not full.
func (d *Disk) HasRoom() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.full
}

// Has says whether an entry is on disk, as part of the log or behind a snapshot.
func (d *Disk) Has(index uint64, data []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.snapshots) > 0 && d.snapshots[0].meta.Index >= index {
		return true
	}
	l, ok := d.log[index]
	return ok && bytes.Equal(l.Data, data)
}

// erase empties the disk.
func (d *Disk) erase() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.log)
	clear(d.values)
	d.first, d.last, d.snapshots, d.note = 0, 0, nil, nil
}

// compact deletes the log behind the newest snapshot, but nothing that is not applied.
func (d *Disk) compact(applied uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.snapshots) == 0 || d.first == 0 {
		return
	}
	for ; d.first < d.last && d.first <= min(applied, d.snapshots[0].meta.Index); d.first++ {
		delete(d.log, d.first)
	}
}

// Last returns the index of the log's last entry, 0 without any.
func (d *Disk) Last() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// keep adds an entry to the log.
func (d *Disk) keep(l *raft.Log) error {
	if d.last != 0 && l.Index != d.last+1 {
		return fmt.Errorf("entry %d does not follow entry %d", l.Index, d.last)
	}
	entry := *l
	entry.Data = append([]byte(nil), l.Data...)
	entry.Extensions = append([]byte(nil), l.Extensions...)
	d.log[l.Index] = entry
	if d.first == 0 {
		d.first = l.Index
	}
	d.last = l.Index
	if d.stored != nil {
		d.stored(&entry)
	}
	return nil
}

// settle waits as long as a write takes. It is called with the lock held, which it gives
// back meanwhile, and says whether the process is still there then.
func (d *Disk) settle(run int, w *write) bool {
	d.writing[w] = struct{}{}
	slow := d.slow
	d.mu.Unlock()
	defer d.mu.Lock()
	if slow > 0 {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.crashed:
			return false
		}
	}
	for {
		d.mu.Lock()
		hanging, alive := d.hanging, d.run == run
		if hanging == nil || !alive {
			delete(d.writing, w)
			d.mu.Unlock()
			return alive
		}
		d.mu.Unlock()
		<-hanging
	}
}

// open notes that the stores are opened. It fails when they are open already: two rafts on
// one disk would be two voters.
func (d *Disk) open() (closed func() error, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened > 0 {
		return nil, errors.New("the stores are open already")
	}
	d.opened++
	run := d.run
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.run == run {
			d.opened--
		}
		return nil
	}, nil
}

// LogStore is the log of a disk, opened for one run.
type LogStore struct {
	disk   *Disk
	run    int
	broken bool
}

// OpenLog opens the log.
func (d *Disk) OpenLog() *LogStore {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &LogStore{disk: d, run: d.run}
}

// IsMonotonic says that indexes have no gaps, as in the real store.
func (s *LogStore) IsMonotonic() bool { return true }

// FirstIndex returns the first entry's index, 0 without any.
func (s *LogStore) FirstIndex() (uint64, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.first, nil
}

// LastIndex returns the last entry's index, 0 without any.
func (s *LogStore) LastIndex() (uint64, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.last, nil
}

// GetLog reads an entry.
func (s *LogStore) GetLog(index uint64, l *raft.Log) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	entry, ok := s.disk.log[index]
	if !ok {
		return raft.ErrLogNotFound
	}
	*l = entry
	l.Data = append([]byte(nil), entry.Data...)
	return nil
}

// StoreLog stores one entry.
func (s *LogStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries; when it returns they are synced.
func (s *LogStore) StoreLogs(logs []*raft.Log) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if !d.settle(s.run, &write{logs: logs, crashed: make(chan struct{})}) {
		return errCrashed
	}
	if err := s.usable(); err != nil {
		return err
	}
	for _, l := range logs {
		if err := d.keep(l); err != nil {
			return err
		}
	}
	return nil
}

// usable says why the log can't be written.
func (s *LogStore) usable() error {
	switch {
	case s.disk.run != s.run:
		return errCrashed
	case s.broken:
		return errBroken
	case s.disk.full:
		s.broken = true
		return fmt.Errorf("append to the log: %w", syscall.ENOSPC)
	}
	return nil
}

// DeleteRange deletes entries at the log's beginning or end.
func (s *LogStore) DeleteRange(low, high uint64) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != s.run {
		return errCrashed
	}
	if d.first == 0 || high < d.first || low > d.last {
		return nil
	}
	if low > d.first && high < d.last {
		return fmt.Errorf("delete entries %d to %d in the middle of %d to %d", low, high, d.first, d.last)
	}
	for i := max(low, d.first); i <= min(high, d.last); i++ {
		delete(d.log, i)
	}
	switch {
	case low <= d.first && high >= d.last:
		d.first, d.last = 0, 0
	case low <= d.first:
		d.first = high + 1
	default:
		d.last = low - 1
	}
	return nil
}

// StableStore is raft's few values on a disk, opened for one run. A full disk has room for
// them: they are written in place.
type StableStore struct {
	disk *Disk
	run  int
}

// errNoValue has the text that raft expects of a value that was never set.
var errNoValue = errors.New("not found")

// OpenStable opens raft's values.
func (d *Disk) OpenStable() *StableStore {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &StableStore{disk: d, run: d.run}
}

// Set keeps a value. After a crash it does nothing and says so to nobody: raft would panic,
// and the process is gone.
func (s *StableStore) Set(key, value []byte) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != s.run || !d.settle(s.run, &write{crashed: make(chan struct{})}) {
		return nil
	}
	d.values[string(key)] = append([]byte(nil), value...)
	return nil
}

// Get returns a value.
func (s *StableStore) Get(key []byte) ([]byte, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	value, ok := s.disk.values[string(key)]
	if !ok {
		return nil, errNoValue
	}
	return append([]byte(nil), value...), nil
}

// SetUint64 keeps a number.
func (s *StableStore) SetUint64(key []byte, n uint64) error {
	return s.Set(key, fmt.Appendf(nil, "%d", n))
}

// GetUint64 returns a number.
func (s *StableStore) GetUint64(key []byte) (n uint64, err error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(value), "%d", &n)
	return n, err
}

// NoteStore is the node's note on a disk, opened for one run.
type NoteStore struct {
	disk *Disk
	run  int
}

// OpenNote opens the node's note.
func (d *Disk) OpenNote() *NoteStore {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &NoteStore{disk: d, run: d.run}
}

// Read returns what was written last, nil when nothing was.
func (s *NoteStore) Read() ([]byte, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.note, nil
}

// Write replaces the note.
func (s *NoteStore) Write(note []byte) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != s.run || !d.settle(s.run, &write{crashed: make(chan struct{})}) {
		return errCrashed
	}
	d.note = append([]byte(nil), note...)
	return nil
}
