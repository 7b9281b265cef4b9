package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// The kinds of errors (docs/CLIENT.md, section 6), for errors.Is. An error may be
// of several kinds: a timeout also says why nothing could be sent.
var (
	// ErrTimeout: the wait ran out. Acquire: certainly not acquired. When the
	// request was never sent the error is also ErrClientCapacity, ErrNotConnected
	// or ErrAuthRefused. Release: the 5 s of a release ran out while it was
	// certainly unsent.
	ErrTimeout = errors.New("timeout")
	// ErrBusy: the server refused the acquire for want of capacity, or because it
	// stops. Certainly not acquired. Wait a little and call again.
	ErrBusy = errors.New("server busy")
	// ErrClientCapacity: Config.MaxPending requests of this broker were pending
	// all the time. Nothing was sent.
	ErrClientCapacity = errors.New("client at capacity")
	// ErrCancelled: the context ended before anything was sent. Certainly nothing
	// happened. The error is also the context's own.
	ErrCancelled = errors.New("cancelled")
	// ErrIndeterminate: the request may have been sent and its outcome is not
	// known. Acquire: the key may be held, by no ticket, until its lease ends at
	// the latest; the caller must not enter the critical section. Release: the
	// grant may be released, or not; together with ErrNotCurrent it is gone, and
	// only what ended it is not known.
	ErrIndeterminate = errors.New("outcome unknown")
	// ErrUnsupportedDuration: a time is out of its range, or negative. Nothing
	// was sent.
	ErrUnsupportedDuration = errors.New("unsupported duration")
	// ErrInsufficientLease: the work budget is above the lease (nothing was sent),
	// or less than the budget was left when the grant came or when Acquire was about
	// to return it (it is being released).
	ErrInsufficientLease = errors.New("insufficient lease")
	// ErrInvalidKey: the key is empty, over 128 bytes, not UTF-8, or contains a
	// space or a line break. Nothing was sent.
	ErrInvalidKey = errors.New("invalid key")
	// ErrAuthRefused: every session's client token is refused by the servers.
	// Nothing was sent.
	ErrAuthRefused = errors.New("authentication refused")
	// ErrNotConnected: no session can serve. Nothing was sent.
	ErrNotConnected = errors.New("not connected")
	// ErrClosed: the broker is closed, or the ticket was detached. Nothing was
	// sent.
	ErrClosed = errors.New("closed")
	// ErrNotCurrent: the released token is not the key's current one: it was
	// released before, or its lease has ended. The error is also ErrIndeterminate
	// when an earlier attempt of the same release may have been sent and its answer
	// was lost: that attempt may have released it in time. So test for
	// ErrNotCurrent first.
	ErrNotCurrent = errors.New("not current")
	// ErrProtocol: the server broke the protocol or ended the session with an
	// error. Together with ErrIndeterminate for what may have been sent.
	ErrProtocol = errors.New("protocol violation")
	// ErrConfig: a bad configuration. Only New and Connect return it.
	ErrConfig = errors.New("bad configuration")
)

// fault is why a call failed: a kind that callers test for, what lies behind it
// (a further kind, the context's error, the session's end; may be nil), and what
// happened in words (may be empty).
type fault struct {
	kind  error
	cause error
	why   string
}

// replyFaults turns replies to one request into faults; A and R are success.
var replyFaults = map[wire.Op]*fault{
	wire.OpTimeout:    {kind: ErrTimeout, why: "somebody else has the key"},
	wire.OpBusy:       {kind: ErrBusy, why: "it takes no more at the moment, try again a little later"},
	wire.OpNotCurrent: {kind: ErrNotCurrent, why: "released before, or its lease has ended"},
}

// notCurrentAgain is an N to a release of which an earlier attempt may have been sent.
var notCurrentAgain = &fault{kind: ErrNotCurrent, cause: ErrIndeterminate, why: "an earlier attempt may have released it, else its lease has ended"}

// reasonKinds turns the reasons of E, which end a session, into kinds. A reason
// that is not here is none of the protocol's.
var reasonKinds = map[wire.Reason]error{
	wire.BadOp:       ErrProtocol,
	wire.BadRequest:  ErrProtocol,
	wire.LineTooLong: ErrProtocol,
	wire.BadLease:    ErrProtocol,
	wire.BadKey:      ErrProtocol,
	wire.AuthFailed:  ErrAuthRefused,
	wire.NotActive:   errNodeCantServe,
	wire.NoLeader:    errNodeCantServe,
}

// What ends a session without being a kind of its own: to its calls it is the
// cause behind ErrIndeterminate.
var (
	errNodeCantServe = errors.New("the node can't serve")
	errMoved         = errors.New("the node is not the leader")
	errNeighbour     = errors.New("the session was closed for another request on it")
	errRetired       = errors.New("another node leads")
	errIdle          = errors.New("the session was idle")
	errBrokerClosed  = errors.New("the broker was closed")
	errStalled       = errors.New("the peer takes no bytes")
)

// endedByServer is the reason for which an E ends a session.
func endedByServer(reason string) error {
	kind, known := reasonKinds[wire.Reason(reason)]
	if !known {
		kind = ErrProtocol
	}
	return fmt.Errorf("%w: the server ended the session with %q", kind, reason)
}

// callError is an error of one call. Its text names the key, the node, what was
// tried and for how long.
type callError struct {
	tried string // "acquire", "release"
	key   string
	asked string // the times asked for; may be empty
	node  string // where it was sent last; empty when nowhere
	took  time.Duration
	fault fault
}

func (e *callError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %q", e.tried, e.key)
	if e.asked != "" {
		fmt.Fprintf(&s, " (%s)", e.asked)
	}
	if e.node != "" {
		fmt.Fprintf(&s, " at %s", e.node)
	}
	if e.took > 0 {
		fmt.Fprintf(&s, " after %s", brief(e.took))
	}
	fmt.Fprintf(&s, ": %s", e.fault.kind)
	parts := []any{e.fault.why, e.fault.cause}
	if e.fault.kind == ErrTimeout {
		parts = []any{e.fault.cause, e.fault.why} // the cause is a kind
	}
	for _, part := range parts {
		if part != nil && part != "" {
			fmt.Fprintf(&s, ": %s", part)
		}
	}
	if e.fault.kind == ErrIndeterminate {
		s.WriteString("; the key may be held until its lease ends")
	}
	return s.String()
}

// brief rounds a duration to what a reader wants to know.
func brief(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

func (e *callError) Unwrap() []error {
	if e.fault.cause == nil {
		return []error{e.fault.kind}
	}
	return []error{e.fault.kind, e.fault.cause}
}
