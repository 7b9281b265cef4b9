package link

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// reason groups refused streams for the log.
type reason int

const (
	reasonRefused reason = iota
	reasonRemoved
	reasonWrongNode
	reasonVersion
	reasonUnproved
	reasonNoHello
	reasonFull
	reasonBroken // said nothing in time or went away: a port scan, a health check
	reasons
)

func reasonOf(err error) reason {
	var r *refusal
	switch {
	case errors.Is(err, errUnproved):
		return reasonUnproved
	case errors.Is(err, errNoHello):
		return reasonNoHello
	case !errors.As(err, &r):
		return reasonBroken
	}
	switch r.answer {
	case answerRemoved:
		return reasonRemoved
	case answerWrongNode:
		return reasonWrongNode
	case answerVersion:
		return reasonVersion
	}
	return reasonRefused
}

// refusedEvery is how often a reason is logged at most: whoever is refused comes
// again, twice a second when it is a node's raft.
const refusedEvery = 10 * time.Second

// refusals logs the streams that were refused, and how many it did not log.
type refusals struct {
	log *slog.Logger

	mu      sync.Mutex
	next    [reasons]time.Time
	skipped [reasons]int
}

func newRefusals(log *slog.Logger) *refusals { return &refusals{log: log} }

// refused logs why there is no stream from an address. err may be nil.
func (r *refusals) refused(from net.Addr, why reason, err error) {
	if why == reasonBroken {
		r.log.Debug("a stream ended before its hello", "remote", from, "error", err)
		return
	}
	skipped, now := r.due(why)
	if !now {
		return
	}
	attrs := []any{"remote", from, "alike_before", skipped}
	if why == reasonFull {
		r.log.Warn("refused a stream: there are as many as may be", append(attrs, "max", MaxStreams)...)
		return
	}
	r.log.Warn("refused a stream", append(attrs, "reason", err)...)
}

// due tells whether a reason may be logged now, and how many were not before.
func (r *refusals) due(why reason) (skipped int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.next[why]) {
		r.skipped[why]++
		return 0, false
	}
	skipped = r.skipped[why]
	r.next[why], r.skipped[why] = now.Add(refusedEvery), 0
	return skipped, true
}
