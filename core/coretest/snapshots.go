package coretest

import (
	"bytes"
	"fmt"
	"io"
	"syscall"

	"github.com/hashicorp/raft"
)

// keptSnapshots is how many snapshots stay on disk, as in the real store.
const keptSnapshots = 2

// storedSnapshot is a whole snapshot on disk.
type storedSnapshot struct {
	meta    raft.SnapshotMeta
	content []byte
}

// SnapshotStore is the snapshots of a disk, opened for one run. A snapshot is kept from its
// Close on.
type SnapshotStore struct {
	disk *Disk
	run  int
}

// OpenSnapshots opens the snapshots.
func (d *Disk) OpenSnapshots() *SnapshotStore {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &SnapshotStore{disk: d, run: d.run}
}

// Create begins a snapshot.
func (s *SnapshotStore) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, configIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if !s.disk.HasRoom() {
		return nil, fmt.Errorf("create a snapshot: %w", syscall.ENOSPC)
	}
	return &snapshotSink{store: s, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: c, ConfigurationIndex: configIndex,
	}}, nil
}

// List returns what each snapshot is, the newest first.
func (s *SnapshotStore) List() (list []*raft.SnapshotMeta, err error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	for _, stored := range s.disk.snapshots {
		meta := stored.meta
		list = append(list, &meta)
	}
	return list, nil
}

// Open reads a snapshot.
func (s *SnapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	for _, stored := range s.disk.snapshots {
		if stored.meta.ID == id {
			meta := stored.meta
			return &meta, io.NopCloser(bytes.NewReader(stored.content)), nil
		}
	}
	return nil, nil, fmt.Errorf("no snapshot %s", id)
}

// snapshotSink is a snapshot that is being written.
type snapshotSink struct {
	store   *SnapshotStore
	meta    raft.SnapshotMeta
	content bytes.Buffer
	ended   bool
}

func (s *snapshotSink) ID() string { return s.meta.ID }

func (s *snapshotSink) Write(p []byte) (int, error) { return s.content.Write(p) }

func (s *snapshotSink) Cancel() error {
	s.ended = true
	return nil
}

func (s *snapshotSink) Close() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if err := s.keep(); err != nil {
		return err
	}
	if saved := s.store.disk.saved; saved != nil {
		saved(s.meta.Index, s.content.Bytes())
	}
	return nil
}

func (s *snapshotSink) keep() error {
	d := s.store.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != s.store.run || !d.settle(s.store.run, &write{crashed: make(chan struct{})}) {
		return errCrashed
	}
	s.meta.Size = int64(s.content.Len())
	d.snapshots = append([]*storedSnapshot{{s.meta, s.content.Bytes()}}, d.snapshots...)
	d.snapshots = d.snapshots[:min(len(d.snapshots), keptSnapshots)]
	return nil
}
