package server

import "sync/atomic"

// traffic is what all connections together have moved. Each request touches it, so it is
// counted without a lock.
type traffic struct {
	received, sent atomic.Uint64 // bytes on the sockets
	pending        atomic.Int64  // answers in the queues of all connections
}

// Stats is how a Server stands.
type Stats struct {
	Connections, Limit int    // open, those in their handshake included; and how many there may be
	Received, Sent     uint64 // bytes on the sockets since the start, handshakes and TLS included
	Pending            int    // answers that are decided and in no write yet
}

// Stats returns how the server stands. It looks at no single connection.
func (s *Server) Stats() Stats {
	return Stats{
		Connections: s.Connections(), Limit: s.max,
		Received: s.traffic.received.Load(), Sent: s.traffic.sent.Load(),
		Pending: int(s.traffic.pending.Load()),
	}
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
