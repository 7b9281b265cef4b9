package server

import "sync/atomic"

// traffic is what a connection has moved. It is a connection's own: a counter that all of
// them share is fetched from the other core at each request.
type traffic struct {
	received, sent atomic.Uint64 // bytes on the socket
}

// Stats is how a Server stands.
type Stats struct {
	Connections, Limit int    // open, those in their handshake included; and how many there may be
	Received, Sent     uint64 // bytes on the sockets since the start, handshakes and TLS included
	Pending            int    // answers that are decided and in no write yet
}

// Stats returns how the server stands. It looks at each connection for a moment, and holds
// up none that is open but for that.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Connections: len(s.conns), Limit: s.max, Received: s.moved.received, Sent: s.moved.sent}
	for c := range s.conns {
		st.add(c)
	}
	for c := range s.displaced {
		st.add(c)
	}
	return st
}

func (st *Stats) add(c *conn) {
	st.Received += c.traffic.received.Load()
	st.Sent += c.traffic.sent.Load()
	c.mu.Lock()
	st.Pending += len(c.queue)
	c.mu.Unlock()
}

// settle adds what a connection that has ended has moved to what is no open one's. The
// server's lock is held.
func (s *Server) settle(c *conn) {
	s.moved.received += c.traffic.received.Load()
	s.moved.sent += c.traffic.sent.Load()
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
