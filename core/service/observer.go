package service

import "time"

// Observer is told what the service decides. It is called with the service's lock
// held and values that are already at hand: it must not block and must not call
// the service.
type Observer interface {
	AcquireDecided(AcquireEvent)
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

// AcquireEvent is the end of one acquire.
type AcquireEvent struct {
	Key      string
	Owner    uint64
	Result   AcquireResult
	Token    uint64        // AcquireGranted
	Waited   time.Duration // from being parsed to being decided
	Position int           // acquires before it in the queue when it came
}

// ReleaseEvent is the end of one release. Probes (token 0) are not reported.
type ReleaseEvent struct {
	Key     string
	Token   uint64
	Current bool // it was the current token, so the grant has ended
}

// LeaseEvent is a grant that ended because its lease ran out.
type LeaseEvent struct {
	Key   string
	Token uint64
	Owner uint64
}

// gone is the outcome of an acquire whose session ended first: it gets no answer.
const gone Outcome = 0

var acquireResults = [...]AcquireResult{gone: AcquireGone, Granted: AcquireGranted, TimedOut: AcquireTimedOut, Busy: AcquireBusy}

// observeTurnedAway reports an acquire of a session that the node does not serve.
func (s *Service) observeTurnedAway(c *Session, a Acquire) {
	if s.observer == nil {
		return
	}
	result := AcquireTurnedAway
	if c.closed {
		result = AcquireGone
	}
	s.observer.AcquireDecided(AcquireEvent{Key: a.Key, Owner: a.Owner, Result: result})
}

// observeAcquire reports the end of an acquire that was in a queue.
func (s *Service) observeAcquire(w *waiter, token uint64, result AcquireResult) {
	if s.observer == nil {
		return
	}
	s.observer.AcquireDecided(AcquireEvent{
		Key: w.queue.key, Owner: w.owner, Result: result, Token: token,
		Waited: s.now() - w.since, Position: w.position,
	})
}
