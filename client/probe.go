package client

import (
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// probePause is the time between two probes of a session.
const probePause = time.Second

// probe is a release of token 0: an N for it that comes before an A shows that the
// grant was made after the probe was sent (docs/CLIENT.md, section 3).
type probe struct {
	key     string  // of the probe that is due or under way; empty when none
	sent    bool    // it may be on its way
	at      instant // before it was handed to the socket
	floor   instant // at of the last one that was answered: no grant read after that answer is older
	dueNext time.Duration
}

// takeProbe begins the probe that is due.
func (s *session) takeProbe(buf []byte, now instant) []byte {
	p := &s.probe
	if p.key == "" || p.sent {
		return buf
	}
	p.sent, p.at, p.dueNext = true, now, now.mono+probePause
	return wire.Request{Op: wire.OpRelease, Key: p.key}.Append(buf)
}

// askProbe has the writer send a probe when one is due, and says when the next one
// is (docs/CLIENT.md, section 3).
func (s *session) askProbe(now time.Duration) (next time.Duration) {
	p := &s.probe
	if s.node.noProbe || p.key != "" {
		return never
	}
	c := s.sentAcquires.head
	for c != nil && !c.blocking() {
		c = c.next
	}
	if c == nil {
		return never
	}
	if due := max(c.sentAt.mono+probePause, p.dueNext); now < due {
		return due
	}
	p.key = c.key
	s.wakeWriter()
	return now + probePause
}

// probeFailed keeps further probes from a server that answered one with anything
// but N.
func (s *session) probeFailed() {
	if s.probe.sent {
		s.node.noProbe = true
	}
}
