package service

// Gate names one of the three gates of admission (docs/PROTOCOL.md, section 4).
type Gate uint8

const (
	// GateAcquires guards acquires in flight; while it is closed every acquire is
	// refused.
	GateAcquires Gate = iota
	// GateKeys guards active keys; while it is closed acquires of keys that are
	// not active are refused.
	GateKeys
	// GateWaiters guards waiters in all; while it is closed acquires that would
	// have to queue are refused.
	GateWaiters

	gateCount
)

// String returns the gate's name as metrics and logs have it.
func (g Gate) String() string {
	switch g {
	case GateAcquires:
		return "acquires"
	case GateKeys:
		return "keys"
	case GateWaiters:
		return "waiters"
	}
	return "unknown"
}

// gate has hysteresis: it closes at nine tenths of its limit and opens again
// below three quarters, so that a server at its limit does not flap with every
// request.
type gate struct {
	limit  int
	use    int
	closed bool
}

// set notes the use and returns whether that closed or opened the gate.
func (g *gate) set(use int) (changed bool) {
	g.use = use
	was := g.closed
	switch {
	case 10*use >= 9*g.limit:
		g.closed = true
	case 4*use < 3*g.limit:
		g.closed = false
	}
	return g.closed != was
}

// GateState is a gate as it stands.
type GateState struct {
	Limit, Use int
	Closed     bool
}

// updateGates is called at the end of each call of the service, so the next one
// finds the gates as its predecessors left them.
func (s *Service) updateGates() {
	use := [gateCount]int{
		GateAcquires: s.acquiring,
		GateKeys:     s.proposer.Len() + s.unheld,
		GateWaiters:  s.parked,
	}
	for i := range s.gates {
		if s.gates[i].set(use[i]) && s.observer != nil {
			s.observer.GateChanged(Gate(i), s.gates[i].closed)
		}
	}
}

// admitted: an acquire is proposed or parked.
const admitted Outcome = 255

// admit decides what an acquire gets before it is proposed or parked: whether the
// key is taken, and if so, whether it may wait.
func (s *Service) admit(c *Session, q *queue, held bool, wait bool) (Outcome, Refusal) {
	taken := held || q != nil
	switch {
	case c.closed:
		return gone, 0
	case s.draining:
		return Busy, RefusedDraining
	case s.gates[GateAcquires].closed:
		return Busy, RefusedAcquires
	case taken && !wait:
		return TimedOut, 0
	case taken && s.gates[GateWaiters].closed:
		return Busy, RefusedWaiters
	case taken && q != nil && q.parked >= s.limits.WaitersPerKey:
		return Busy, RefusedKeyWaiters
	case !taken && s.gates[GateKeys].closed:
		return Busy, RefusedKeys
	}
	return admitted, 0
}
