package client

import (
	"strings"
	"time"
)

// whyNot says why no session serves: each node's reason in words, and
// ErrAuthRefused when some session is refused, else ErrNotConnected. mu is held.
func (b *Broker) whyNot() (text string, kind error) {
	kind = ErrNotConnected
	var texts []string
	for _, n := range b.nodes {
		why, awaited := "", ""
		for _, sl := range n.slots {
			if sl.refused {
				kind = ErrAuthRefused
			}
			switch {
			case sl.sess != nil && sl.sess.state == sessionWarm:
				why = "it is not the leader"
			case sl.err != nil:
				why = sl.err.Error()
			case sl.sess != nil && sl.sess.awaited != "":
				awaited = sl.sess.awaited
			case sl.dialling && awaited == "":
				awaited = "it is being dialled"
			}
		}
		if why == "" {
			why = awaited
		}
		if why != "" {
			texts = append(texts, n.addr+": "+why)
		}
	}
	return strings.Join(texts, "; "), kind
}

// condition is whyNot for who does not hold mu.
func (b *Broker) condition() (text string, kind error) {
	b.mu.Lock()
	defer b.unlock()
	return b.whyNot()
}

// refused says whether every session is refused for its client token. mu is held.
func (b *Broker) refused() bool {
	if b.serves() {
		return false
	}
	for _, n := range b.nodes {
		for _, sl := range n.slots {
			if !sl.refused && !sl.extra {
				return false
			}
		}
	}
	return true
}

// refuseParked ends the acquires that wait for a session once every session's
// client token is refused. mu is held.
func (b *Broker) refuseParked(now time.Duration) {
	if b.acquires.parked.n == 0 || !b.refused() {
		return
	}
	why, _ := b.whyNot()
	for b.acquires.parked.head != nil {
		b.finish(b.acquires.parked.head, &fault{kind: ErrAuthRefused, why: why}, now)
	}
}

// unsentFault is the outcome of a call whose time ran out while it was certainly
// unsent. mu is held.
func (b *Broker) unsentFault(c *call) *fault {
	switch {
	case c.state == callWaiting:
		return &fault{kind: ErrTimeout, cause: ErrClientCapacity, why: "no place among the pending requests was free in time"}
	case c.state == callQueued:
		return &fault{kind: ErrTimeout, cause: ErrNotConnected, why: "the connection took no bytes in time"}
	}
	if b.serves() {
		return &fault{kind: ErrTimeout, cause: ErrNotConnected, why: "a further session was being opened"}
	}
	why, kind := b.whyNot()
	return &fault{kind: ErrTimeout, cause: kind, why: why}
}
