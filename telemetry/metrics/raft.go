package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ticketing-io/ticketing/core/lock"
)

// Raft times a cluster's entries. It is a replica.Observer.
type Raft struct {
	commit, apply, store, snapshot, batch prometheus.Histogram
	snapshotFailures                      prometheus.Counter
}

func newRaft(f factory) *Raft {
	return &Raft{
		commit:   f.histogram("ticketing_raft_commit_seconds", "From an entry of this node being proposed to its being committed and applied.", diskBuckets),
		apply:    f.histogram("ticketing_raft_apply_seconds", "How long the lock table took to apply an entry.", applyBuckets),
		store:    f.histogram("ticketing_raft_fsync_seconds", "How long the log took to write a batch of entries and sync it to disk.", diskBuckets),
		snapshot: f.histogram("ticketing_raft_snapshot_seconds", "How long a snapshot took from its beginning to being on disk, the leader's included.", saveBuckets),
		batch:    f.histogram("ticketing_raft_batch_commands", "Commands in one entry of this node.", batchBuckets),

		snapshotFailures: f.counter("ticketing_raft_snapshot_failures_total", "Snapshots that the disk did not take."),
	}
}

// Applied notes an entry that took effect.
func (r *Raft) Applied(_ uint64, _ *lock.Entry, _ *lock.Outcome, took time.Duration) {
	r.apply.Observe(took.Seconds())
}

// Restored is of no interest here.
func (*Raft) Restored(*lock.Machine) {}

// Committed notes an entry of this node that was committed.
func (r *Raft) Committed(commands int, took time.Duration) {
	r.commit.Observe(took.Seconds())
	r.batch.Observe(float64(commands))
}

// Stored notes a write of the log.
func (r *Raft) Stored(_ int, took time.Duration) { r.store.Observe(took.Seconds()) }

// SnapshotStored notes a snapshot that is on disk, or that the disk failed.
func (r *Raft) SnapshotStored(took time.Duration, err error) {
	if err != nil {
		r.snapshotFailures.Inc()
		return
	}
	r.snapshot.Observe(took.Seconds())
}

// StandingChanged is of no interest here: a scrape reads how the node stands.
func (*Raft) StandingChanged(bool) {}
