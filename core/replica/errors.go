package replica

import (
	"errors"
	"fmt"
)

// The replica's errors. Unless said otherwise, nothing happened.
var (
	// ErrNotLeader: this node does not serve; ask the leader.
	ErrNotLeader = errors.New("this node is not the leader")
	// ErrUnknown: it may have happened, or may still happen.
	ErrUnknown = errors.New("the outcome is not known")
	// ErrRemoved: this node was removed from its cluster, for good.
	ErrRemoved = errors.New("this node was removed from the cluster")
	// ErrEmptied: the cluster counts this node as a voter, and it has forgotten what it
	// acknowledged.
	ErrEmptied = errors.New("the cluster counts this node as a voter, but its data is gone")
	// ErrInUse: another process has the data folder.
	ErrInUse = errors.New("another process uses the data folder")
	// ErrNotFresh: the cluster has granted something, so a snapshot can't replace it.
	ErrNotFresh = errors.New("the cluster has granted locks before")
	// ErrBadSnapshot: the file is no whole snapshot.
	ErrBadSnapshot = errors.New("not a whole snapshot")
	// ErrTooNew: a committed entry, or a snapshot, is of a newer version.
	ErrTooNew = errors.New("written by a newer version of this program")

	errStopped = errors.New("the node stops")
	errStalled = errors.New("the disk has not answered")
	errHung    = errors.New("the disk has not answered")
)

// Refusal is an operation on the members that was refused: nothing happened.
type Refusal struct{ Text string }

// Error returns the reason.
func (r *Refusal) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }
