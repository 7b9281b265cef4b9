package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
)

const (
	// segmentSize is the size of one file of the log in bytes. It is written whole when
	// it is begun, so it should be small beside a small disk; a full cluster fills one
	// in seconds.
	segmentSize = 32 << 20
	// roomNeeded is how much the disk must have free, in bytes, before a node whose disk
	// was full goes on: for the segment that is written and the next one.
	roomNeeded = 2 * segmentSize
	// snapshotsKept is how many snapshots stay: one more than needed, should the last
	// one not be readable.
	snapshotsKept = 2
	// stableRetry is the pause before raft's term and vote are written again after a
	// failure: without them it could vote twice, so it does nothing else meanwhile.
	stableRetry = 200 * time.Millisecond
)

// Stores is what a node has on disk.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Close     func() error
}

// openStores opens a data folder's log and snapshots, and makes them if need be.
func openStores(dataDir string, logger hclog.Logger) (*Stores, error) {
	dir := filepath.Join(dataDir, "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	log, err := openLog(dir, segmentSize, fs.New(), &metadb.BoltMetaDB{}, logger)
	if err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", dir, err)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dataDir, snapshotsKept, logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the snapshots in %s: %w", dataDir, err), log.Close())
	}
	return &Stores{Log: &frailLog{WAL: log}, Stable: log, Snapshots: snapshots, Close: log.Close}, nil
}

// frailLog is the log on disk. Once a change of it fails, it refuses every other one with
// the same error. The next entries would overwrite the torn ones only in part, and what
// stays of those could be read as entries later. repairTail wipes it before.
type frailLog struct {
	*wal.WAL
	mu     sync.Mutex
	failed error
}

// StoreLogs stores entries.
func (f *frailLog) StoreLogs(logs []*raft.Log) error {
	return f.change(func() error { return f.WAL.StoreLogs(logs) })
}

// StoreLog stores one entry.
func (f *frailLog) StoreLog(log *raft.Log) error { return f.StoreLogs([]*raft.Log{log}) }

// DeleteRange deletes entries.
func (f *frailLog) DeleteRange(first, last uint64) error {
	return f.change(func() error { return f.WAL.DeleteRange(first, last) })
}

func (f *frailLog) change(do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = do()
	}
	return f.failed
}

// watchedLog is a log store whose failures end the generation. Raft would go on with a
// store that stays broken, though there is room again.
type watchedLog struct {
	raft.LogStore
	failed   func(error)
	observer Observer
}

// StoreLogs stores entries. When it fails they may be on disk nevertheless.
func (w watchedLog) StoreLogs(logs []*raft.Log) error {
	start := time.Now()
	err := w.LogStore.StoreLogs(logs)
	if err != nil {
		w.failed(fmt.Errorf("write the log: %w", err))
	} else if w.observer != nil {
		w.observer.Stored(len(logs), time.Since(start))
	}
	return err
}

// StoreLog stores one entry.
func (w watchedLog) StoreLog(log *raft.Log) error { return w.StoreLogs([]*raft.Log{log}) }

// DeleteRange deletes entries.
func (w watchedLog) DeleteRange(first, last uint64) error {
	err := w.LogStore.DeleteRange(first, last)
	if err != nil {
		w.failed(fmt.Errorf("cut the log: %w", err))
	}
	return err
}

// IsMonotonic passes on that the store takes no gaps: raft then clears it when a
// snapshot is installed, instead of leaving a log that refuses every later entry.
func (w watchedLog) IsMonotonic() bool {
	m, ok := w.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// stubbornStable writes raft's term and vote until it succeeds: raft panics when it
// can't. It tells of the first failure.
type stubbornStable struct {
	raft.StableStore
	failed func(error)
}

// Set stores a value.
func (s stubbornStable) Set(key, value []byte) error {
	return s.insist(func() error { return s.StableStore.Set(key, value) })
}

// SetUint64 stores a number.
func (s stubbornStable) SetUint64(key []byte, value uint64) error {
	return s.insist(func() error { return s.StableStore.SetUint64(key, value) })
}

func (s stubbornStable) insist(write func() error) error {
	for {
		err := write()
		if err == nil {
			return nil
		}
		s.failed(fmt.Errorf("write raft's term and vote: %w", err))
		time.Sleep(stableRetry)
	}
}
