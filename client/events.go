package client

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// EventKind says what an Event tells.
type EventKind uint8

const (
	// EventAcquire: an Acquire returned. Took is the whole call; Err is its error.
	EventAcquire EventKind = iota
	// EventRelease: a Release returned. Took is the whole call; Err is its error.
	EventRelease
	// EventCompensation: a grant that nobody's ticket holds was given back, or not
	// (Err).
	EventCompensation
	// EventCompensationDropped: the queue of compensations was full; the lease's
	// end frees the key.
	EventCompensationDropped
	// EventDial: a dial ended: Took is its time with the handshake, Err why it
	// failed.
	EventDial
	// EventSessionClosed: a session that had been opened ended, because of Err.
	// Took is how long it lived.
	EventSessionClosed
	// EventLeader: Node is the node that serves from now on.
	EventLeader
)

// String names the kind, for logs and labels.
func (k EventKind) String() string {
	names := [...]string{"acquire", "release", "compensation", "compensation dropped", "dial", "session closed", "leader"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Event is one thing that happened, for an application's metrics.
type Event struct {
	Kind EventKind
	Key  string        // of an acquire, a release or a compensation
	Node string        // the address of the node, where there was one
	Took time.Duration // how long it took
	Err  error         // nil on success
}

// Stats are a broker's counts at one moment.
type Stats struct {
	Sessions             int    // open sessions that passed the handshake
	Serving              int    // of them, those that can serve
	Pending              int    // acquires pending, waiting for a place not counted
	Held                 int    // tickets neither released, detached nor ended
	Compensations        int    // compensations that wait or are under way
	CompensationsDropped uint64 // compensations that found the queue full, ever
}

// maxNotes bounds what waits to be told to a slow logger or listener; what comes on
// top is not told.
const maxNotes = 256

// note is something that happened to the broker itself. It is told by a goroutine
// of its own, so that a slow logger or listener holds up no session.
type note struct {
	Event
	level slog.Level
	text  string // for the log; empty logs nothing
}

// levelOf says how loud the end of a session is: what the broker did itself, or what
// is expected of a cluster, is not.
func levelOf(err error) slog.Level {
	for _, quiet := range []error{errNeighbour, errRetired, errIdle, errBrokerClosed, errMoved} {
		if errors.Is(err, quiet) {
			return slog.LevelDebug
		}
	}
	return slog.LevelWarn
}

// note hands n to the reporter. mu is held.
func (b *Broker) note(n note) {
	if b.silent {
		return
	}
	select {
	case b.notes <- n:
	default:
	}
}

// report is the goroutine that tells the application what happened.
func (b *Broker) report() {
	for n := range b.notes {
		if b.cfg.Events != nil {
			b.cfg.Events(n.Event)
		}
		if n.text == "" {
			continue
		}
		attrs := []slog.Attr{slog.String("node", n.Node)}
		if n.Key != "" {
			attrs = append(attrs, slog.String("key", n.Key))
		}
		if n.Took > 0 {
			attrs = append(attrs, slog.Duration("took", n.Took))
		}
		if n.Err != nil {
			attrs = append(attrs, slog.String("error", n.Err.Error()))
		}
		b.cfg.Logger.LogAttrs(context.Background(), n.level, n.text, attrs...)
	}
}
