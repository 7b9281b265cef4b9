package service

import "time"

// Observer is told what the service decides. It is called with the service's lock
// held and values that are already at hand: it must not block and must not call
// the service.
type Observer interface {
	// AcquireDecided may return what is to be called once the answer has been written to
	// its connection, or never will be; nil for nothing.
	AcquireDecided(AcquireEvent) (answered func())
	ReleaseDecided(ReleaseEvent)
	LeaseEnded(LeaseEvent)
	GateChanged(gate Gate, closed bool)
}

// AcquireResult is how an acquire ended.
type AcquireResult uint8

const (
	AcquireGranted    AcquireResult = iota + 1
	AcquireTimedOut                 // its wait ran out, or an immediate attempt found the key taken
	AcquireBusy                     // refused for want of capacity, or while draining
	AcquireGone                     // its session ended first
	AcquireExhausted                // the tokens are used up
	AcquireUnknown                  // it was proposed, and this node does not learn what came of it
	AcquireTurnedAway               // this node does not serve; its session ends
)

// String returns the result's name as metrics and traces have it.
func (r AcquireResult) String() string {
	switch r {
	case AcquireGranted:
		return "granted"
	case AcquireTimedOut:
		return "timeout"
	case AcquireBusy:
		return "busy"
	case AcquireGone:
		return "gone"
	case AcquireExhausted:
		return "exhausted"
	case AcquireUnknown:
		return "unknown"
	case AcquireTurnedAway:
		return "moved"
	}
	return "none"
}

// AcquireEvent is the end of one acquire.
type AcquireEvent struct {
	Key      string
	Owner    uint64
	Result   AcquireResult
	Refused  Refusal       // AcquireBusy: why
	Token    uint64        // AcquireGranted
	Wait     time.Duration // as it was asked for
	Lease    time.Duration // as it was asked for
	At       time.Time     // when it was parsed
	Waited   time.Duration // from being parsed to being decided
	Proposed time.Duration // from being parsed to its grant being proposed, the last time; 0 if it never was
	Position int           // acquires before it in the queue when it came
	Freed    End           // the end of the grant before it, if it waited for that
	Entry    EntryInfo     // what its grant went into
}

// EntryInfo is an entry, as far as people ask for it.
type EntryInfo struct {
	Index, Term uint64 // in the log; 0 without one
	Commands    int
}

// End is how a grant ended; the zero End says that none did.
type End struct {
	Token   uint64
	Owner   uint64
	Expired bool          // its lease ran out; otherwise it was released
	At      time.Time     // when that was decided
	Took    time.Duration // a release: from being parsed to being decided
	Held    time.Duration // how long it had been granted; 0 where that is not known
	Lag     time.Duration // an expiry: how long after the lease's end it was decided
	Entry   EntryInfo
}

// Refusal is why an acquire was answered Busy.
type Refusal uint8

const (
	RefusedAcquires    Refusal = iota + 1 // the gate of acquires in flight is closed
	RefusedKeys                           // the gate of active keys is closed
	RefusedWaiters                        // the gate of waiters is closed
	RefusedKeyWaiters                     // the key has as many waiters as are allowed
	RefusedDraining                       // the node stops, or hands its leadership over
	RefusedQuiet                          // nothing is granted yet, after a restore
	RefusedNotProposed                    // raft did not take its entry
)

// ReleaseEvent is the end of one release. Probes (token 0) are not reported.
type ReleaseEvent struct {
	Key     string
	Current bool // it was the current token, so the grant has ended
	End          // without Held unless Current
}

// LeaseEvent is a grant that ended because its lease ran out.
type LeaseEvent struct {
	Key string
	End
}

// gone is the outcome of an acquire whose session ended first: it gets no answer.
const gone Outcome = 0

var acquireResults = [...]AcquireResult{gone: AcquireGone, Granted: AcquireGranted, TimedOut: AcquireTimedOut, Busy: AcquireBusy}
