package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ticketing-io/ticketing/core/server"
)

// Connections counts connections. It is a server.Observer.
type Connections struct {
	accepted, failed prometheus.Counter
	closed           map[server.CloseReason]prometheus.Counter
	handshakes       map[server.CloseReason]prometheus.Counter // the reasons that only a handshake has
}

// handshakeFailures are the reasons for which only a connection in its handshake closes.
var handshakeFailures = []server.CloseReason{
	server.ClosedAuth, server.ClosedHandshake, server.ClosedHandshakeTimeout, server.ClosedTLS, server.ClosedDisplaced,
}

func newConnections(f factory) *Connections {
	c := &Connections{
		accepted:   f.counter("ticketing_connections_accepted_total", "Connections that were accepted, before their handshake."),
		failed:     f.counter("ticketing_accept_failures_total", "Times that no connection could be accepted, for want of file descriptors for example."),
		closed:     map[server.CloseReason]prometheus.Counter{},
		handshakes: map[server.CloseReason]prometheus.Counter{},
	}
	closed := f.counters("ticketing_connections_closed_total", "Connections that ended, by why.", "reason")
	for _, reason := range server.CloseReasons() {
		c.closed[reason] = closed.WithLabelValues(string(reason))
	}
	failures := f.counters("ticketing_handshake_failures_total", "Connections that ended in their handshake, by why. They are among the closed ones.", "reason")
	for _, reason := range handshakeFailures {
		c.handshakes[reason] = failures.WithLabelValues(string(reason))
	}
	return c
}

// ConnectionOpened counts a connection that was accepted.
func (c *Connections) ConnectionOpened() { c.accepted.Inc() }

// ConnectionClosed counts a connection that has ended.
func (c *Connections) ConnectionClosed(reason server.CloseReason, _ time.Duration) {
	if n := c.closed[reason]; n != nil {
		n.Inc()
	}
	if n := c.handshakes[reason]; n != nil {
		n.Inc()
	}
}

// AcceptFailed counts a failed accept.
func (c *Connections) AcceptFailed(error) { c.failed.Inc() }
