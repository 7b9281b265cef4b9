package replica

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

// fsm applies committed entries to the machine. Raft calls it from one goroutine;
// others look at the machine under mu.
type fsm struct {
	observer Observer
	broken   func(error) // told once that this node can't apply what is committed
	changed  func()      // told that a member's addresses may have changed

	mu      sync.RWMutex
	machine *lock.Machine
	failed  error // why it stopped

	entry lock.Entry // decoded into; its memory is used again
}

func newFSM(o Observer, broken func(error), changed func()) *fsm {
	return &fsm{observer: o, broken: broken, changed: changed, machine: lock.New()}
}

// Apply applies one entry. Its response is a *lock.Outcome, or an error when this node
// can't apply it.
func (f *fsm) Apply(l *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.apply(l)
}

// ApplyBatch applies entries that were committed together, the machine locked once.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	responses := make([]any, len(logs))
	for i, l := range logs {
		if l.Type == raft.LogCommand {
			responses[i] = f.apply(l)
		}
	}
	return responses
}

func (f *fsm) apply(l *raft.Log) any {
	if f.failed != nil {
		return f.failed // replicas must not differ: nothing after what could not be applied
	}
	if err := lock.DecodeEntry(l.Data, &f.entry); err != nil {
		if errors.Is(err, lock.ErrTooNew) {
			err = fmt.Errorf("%w: %w", ErrTooNew, err)
		}
		f.failed = fmt.Errorf("apply entry %d: %w", l.Index, err)
		f.broken(f.failed)
		return f.failed
	}
	// Its own, since who proposed the entry reads it while the next one is applied.
	out := new(lock.Outcome)
	start := time.Now()
	f.machine.Apply(&f.entry, out)
	out.Index, out.Term = l.Index, l.Term
	if f.observer != nil {
		f.observer.Applied(l.Index, &f.entry, out, time.Since(start))
	}
	for i := range f.entry.Commands {
		if f.entry.Commands[i].Kind == lock.KindMember {
			f.changed()
		}
	}
	return out
}

// Snapshot copies the machine; writing the copy does not hold up what is applied.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.failed != nil {
		return nil, f.failed
	}
	return snapshot{f.machine.Snapshot()}, nil
}

// Restore replaces the machine, when the whole snapshot is good.
func (f *fsm) Restore(r io.ReadCloser) error {
	m, err := lock.Read(r)
	if errors.Is(err, lock.ErrTooNew) {
		err = fmt.Errorf("restore a snapshot: %w: %w", ErrTooNew, err)
		f.broken(err)
		return err
	}
	if err != nil {
		return fmt.Errorf("restore a snapshot: %w", err)
	}
	f.mu.Lock()
	f.machine = m
	if f.observer != nil {
		f.observer.Restored(m)
	}
	f.mu.Unlock()
	f.changed()
	return nil
}

// look calls a function with the machine, which must not be changed nor kept.
func (f *fsm) look(do func(m *lock.Machine)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	do(f.machine)
}

// snapshot is a copy of the machine, to be written.
type snapshot struct{ copy *lock.Snapshot }

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := s.copy.WriteTo(sink); err != nil {
		return errors.Join(fmt.Errorf("write a snapshot: %w", err), sink.Cancel())
	}
	return sink.Close()
}

func (s snapshot) Release() {}
