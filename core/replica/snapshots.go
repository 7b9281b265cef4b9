package replica

import (
	"time"

	"github.com/hashicorp/raft"
)

// watchedSnapshots is a snapshot store that tells how long each snapshot took. What ends
// one without the disk's fault, as a leader that is gone, is not told.
type watchedSnapshots struct {
	raft.SnapshotStore
	told func(took time.Duration, err error)
}

// Create begins a snapshot.
func (w watchedSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	start := time.Now()
	sink, err := w.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		w.told(time.Since(start), err)
		return nil, err
	}
	return &watchedSink{SnapshotSink: sink, report: w.told, start: start}, nil
}

// watchedSink is a snapshot that is written, by one goroutine.
type watchedSink struct {
	raft.SnapshotSink
	report func(took time.Duration, err error)
	start  time.Time
	told   bool
}

// Write writes a part of the snapshot.
func (s *watchedSink) Write(p []byte) (int, error) {
	n, err := s.SnapshotSink.Write(p)
	if err != nil {
		s.tell(err)
	}
	return n, err
}

// Close ends the snapshot; it is on disk then. Raft may close it again.
func (s *watchedSink) Close() error {
	err := s.SnapshotSink.Close()
	s.tell(err)
	return err
}

// Cancel gives the snapshot up: nothing of it was stored, and nobody failed, unless that
// was told.
func (s *watchedSink) Cancel() error {
	s.told = true
	return s.SnapshotSink.Cancel()
}

func (s *watchedSink) tell(err error) {
	if !s.told {
		s.told = true
		s.report(time.Since(s.start), err)
	}
}

// snapshotStored tells how a snapshot ended. Raft tries again after a while, and says
// nothing that an operator would see.
func (r *Replica) snapshotStored(took time.Duration, err error) {
	if err != nil {
		r.log.Warn("a snapshot could not be stored; until one is, the log grows and a restart takes longer", "error", err)
	}
	if r.opts.Observer != nil {
		r.opts.Observer.SnapshotStored(took, err)
	}
}
