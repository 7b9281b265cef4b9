package replica

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

// failingSnapshots is a snapshot store whose steps fail as they are told.
type failingSnapshots struct {
	raft.SnapshotStore
	raft.SnapshotSink
	create, write, close error
}

func (f failingSnapshots) Create(raft.SnapshotVersion, uint64, uint64, raft.Configuration, uint64, raft.Transport) (raft.SnapshotSink, error) {
	return f, f.create
}
func (f failingSnapshots) Write(p []byte) (int, error) { return len(p), f.write }
func (f failingSnapshots) Close() error                { return f.close }
func (f failingSnapshots) Cancel() error               { return nil }

// snapshotTally notes what it is told of snapshots.
type snapshotTally struct{ told []error }

func (s *snapshotTally) SnapshotStored(_ time.Duration, err error)               { s.told = append(s.told, err) }
func (*snapshotTally) Applied(uint64, *lock.Entry, *lock.Outcome, time.Duration) {}
func (*snapshotTally) Restored(*lock.Machine)                                    {}
func (*snapshotTally) Committed(int, time.Duration)                              {}
func (*snapshotTally) Stored(int, time.Duration)                                 {}
func (*snapshotTally) StandingChanged(bool)                                      {}

// Every snapshot is told of once: that it is on disk, or that the disk failed. One that
// was given up for another reason is not told. The log has the failures.
func TestEachSnapshotIsToldOnce(t *testing.T) {
	full := errors.New("no space left on device")
	for _, test := range []struct {
		name   string
		store  failingSnapshots
		cancel bool
		want   []error
	}{
		{"it is stored", failingSnapshots{}, false, []error{nil}},
		{"it can't begin", failingSnapshots{create: full}, false, []error{full}},
		{"a write fails", failingSnapshots{write: full}, true, []error{full}},
		{"its end fails", failingSnapshots{close: full}, true, []error{full}},
		{"it is given up", failingSnapshots{}, true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := &snapshotTally{}
			var log strings.Builder
			r := &Replica{opts: Options{Observer: seen}, log: slog.New(slog.NewTextHandler(&log, nil))}
			sink, err := watchedSnapshots{test.store, r.snapshotStored}.Create(1, 1, 1, raft.Configuration{}, 1, nil)
			if err == nil {
				_, err := sink.Write([]byte("state"))
				if err == nil && (!test.cancel || test.store.close != nil) {
					sink.Close()
					sink.Close() // as raft does
				}
				if test.cancel {
					sink.Cancel()
				}
			}
			if len(seen.told) != len(test.want) || len(test.want) == 1 && !errors.Is(seen.told[0], test.want[0]) {
				t.Errorf("told %v, want %v", seen.told, test.want)
			}
			failed := len(test.want) == 1 && test.want[0] != nil
			if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), full.Error()); got != failed {
				t.Errorf("a failure is in the log: %v, want %v:\n%s", got, failed, &log)
			}
		})
	}
}
