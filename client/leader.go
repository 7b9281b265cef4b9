package client

import (
	"log/slog"
	"time"
)

// leaderNamed takes an L that came on s. Only an L that names the session's own
// node makes it serve; what another node says is a hint where to look
// (docs/CLIENT.md, section 4). mu is held here and below.
func (b *Broker) leaderNamed(s *session, addr string, now time.Duration) {
	s.sawLeader = true
	if addr == s.node.addr {
		if s.state == sessionWarm {
			b.serve(s, now)
		}
		return
	}
	if s.state == sessionServing {
		b.retireNode(s.node, now)
		b.leader = nil
	}
	b.hint(s, addr)
}

// serve gives calls to s from now on. The sessions of a node that led before get
// their last second.
func (b *Broker) serve(s *session, now time.Duration) {
	n := s.node
	s.state = sessionServing
	if b.leader != n {
		for _, o := range b.nodes {
			if o != n {
				b.retireNode(o, now)
			}
		}
		b.leader = n
		b.note(note{Event: Event{Kind: EventLeader, Node: n.addr}, text: "node serves", level: slog.LevelInfo})
	}
	n.serving = append(n.serving, s)
	n.keepOne()
	b.unpark(&b.releases, now)
	b.unpark(&b.acquires, now)
	b.signal()
}

func (b *Broker) retireNode(n *node, now time.Duration) {
	for len(n.serving) > 0 {
		b.retire(n.serving[0], now)
	}
}

// hint looks at the node that another one named: an unknown address is dialled, and
// a known one that is between two dials is dialled now.
func (b *Broker) hint(from *session, addr string) {
	if addr == from.node.addr {
		return // a node that sends its clients to itself must not have them hurry
	}
	for _, n := range b.nodes {
		if n.addr != addr {
			continue
		}
		for _, sl := range n.slots {
			if sl.sess == nil && !sl.dialling && !sl.refused {
				select {
				case sl.kick <- struct{}{}:
				default:
				}
			}
		}
		return
	}
	if full, err := parseAddress(addr); err == nil && full == addr && len(b.nodes) < maxNodes {
		b.addNode(addr, false)
	}
}
