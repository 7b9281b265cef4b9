package replica

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

const (
	// QuietPeriod is how long nothing is granted after a restore or a recovery: the
	// longest lease (docs/PROTOCOL.md, section 2). Whoever holds a lock that the file does
	// not know has lost it by then.
	QuietPeriod = 250 * time.Second
	// maxSnapshot is the largest snapshot file in bytes that is read: 65,536 keys with
	// the longest names need less than a quarter.
	maxSnapshot = 128 << 20
	// restorePatience bounds the installation of a restored state. One that takes longer
	// ends the generation: nothing is served meanwhile.
	restorePatience = time.Minute
)

// SaveSnapshot writes the replicated state with all that was acknowledged before the
// call. ErrNotLeader where this node does not serve.
func (r *Replica) SaveSnapshot(ctx context.Context, w io.Writer) error {
	g, err := r.leading()
	if err != nil {
		return err
	}
	if err := await(ctx, g.raft.Barrier(enqueuePatience)); err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	var s *lock.Snapshot
	r.look(func(m *lock.Machine) { s = m.Snapshot() })
	if _, err := s.WriteTo(w); err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	return nil
}

// RestoreSnapshot replaces the grants, the time and the token counter by a file's, the
// counter raised far beyond anything that was granted. Nothing is granted for
// QuietPeriod afterwards, unless waive says so. The whole file is read and checked
// first: ErrBadSnapshot. ErrNotFresh when this cluster has granted anything.
func (r *Replica) RestoreSnapshot(ctx context.Context, from io.Reader, waive bool) error {
	file, err := lock.Read(io.LimitReader(from, maxSnapshot))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadSnapshot, err)
	}
	g, err := r.leading()
	if err != nil {
		return err
	}
	// Before anybody is interrupted; looked at again when nothing can be granted.
	fresh := false
	r.look(func(m *lock.Machine) { fresh = m.Fresh() })
	if !fresh {
		return ErrNotFresh
	}
	// In the leading loop, with nothing under way and nothing granted meanwhile.
	done := make(chan error, 1)
	task := func() {
		r.elected()
		done <- g.restore(file, waive)
		g.leadership.poke()
	}
	select {
	case g.tasks <- task:
	case <-g.stop:
		return ErrNotLeader
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-done
}

// restore installs a file's state on every node.
func (g *generation) restore(file *lock.Machine, waive bool) error {
	if err := g.barrier(); err != nil {
		return err
	}
	var encoded bytes.Buffer
	var err error
	g.r.look(func(m *lock.Machine) {
		if !m.Fresh() {
			err = ErrNotFresh
			return
		}
		_, err = m.Snapshot().WriteTo(&encoded)
	})
	if err != nil {
		return err
	}
	m, err := lock.Read(&encoded)
	if err != nil {
		return fmt.Errorf("copy the cluster's state: %w", err)
	}
	m.Adopt(file)
	m.Recover(quiet(waive))
	encoded.Reset()
	if _, err := m.Snapshot().WriteTo(&encoded); err != nil {
		return fmt.Errorf("write the state to restore: %w", err)
	}
	hung := time.AfterFunc(restorePatience, func() { g.fail(errStalled) })
	defer hung.Stop()
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Size: int64(encoded.Len())}
	if err := g.raft.Restore(meta, &encoded, restorePatience); err != nil {
		return fmt.Errorf("%w: restore: %w", ErrUnknown, err)
	}
	g.r.log.Warn("a snapshot was restored", "locks", m.Len(), "quiet_period", quiet(waive))
	return nil
}

func quiet(waive bool) time.Duration {
	if waive {
		return 0
	}
	return QuietPeriod
}

// Recover gives a stopped node whose cluster has lost its quorum for good another list
// of voters, read from a peers file as hashicorp/raft defines it. What was acknowledged
// may be lost with the other nodes, so the token counter jumps and nothing is granted
// for QuietPeriod, unless waive says so. It must be run on every node that is left, with
// the same file. ErrInUse while the node runs.
func Recover(o Options, peersFile string, waive bool) (voters int, err error) {
	r, err := New(o)
	if err != nil {
		return 0, err
	}
	defer r.unlock()
	configuration, err := raft.ReadConfigJSON(peersFile)
	if err != nil {
		return 0, fmt.Errorf("read the peers file: %w", err)
	}
	if !hasServer(configuration.Servers, o.NodeID) {
		return 0, refuse("%q, this node, is not in the peers file: run this on the nodes that it names", o.NodeID)
	}
	stores, err := openStores(o.DataDir, newRaftLogger(r.log))
	if err != nil {
		return 0, err
	}
	defer stores.Close()
	switch has, err := raft.HasExistingState(stores.Log, stores.Stable, stores.Snapshots); {
	case err != nil:
		return 0, fmt.Errorf("look for state: %w", err)
	case !has:
		return 0, refuse("there is no state in %s: nothing could be recovered from it", o.DataDir)
	}
	var broken error
	f := newFSM(nil, func(err error) { broken = err }, func() {})
	recovering := recoveringFSM{f, quiet(waive)}
	_, transport := raft.NewInmemTransport("") // writes addresses into the snapshot, and reaches nobody
	defer transport.Close()
	err = raft.RecoverCluster(r.raftConfig(), recovering, stores.Log, stores.Stable, stores.Snapshots, transport, configuration)
	switch {
	case broken != nil:
		return 0, fmt.Errorf("recover: %w", broken)
	case err != nil:
		return 0, fmt.Errorf("recover: %w", err)
	}
	return len(configuration.Servers), nil
}

// recoveringFSM is an fsm whose snapshot says that grants may be lost.
type recoveringFSM struct {
	*fsm
	quiet time.Duration
}

// Snapshot raises the token counter and begins the quiet period.
func (f recoveringFSM) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	f.machine.Recover(f.quiet)
	f.mu.Unlock()
	return f.fsm.Snapshot()
}
