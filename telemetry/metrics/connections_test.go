package metrics

import (
	"errors"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/server"
)

// Every reason for a close has a series; those that only a handshake has count as its
// failures too.
func TestConnectionsCountByReason(t *testing.T) {
	handshake := map[server.CloseReason]bool{
		server.ClosedAuth: true, server.ClosedHandshake: true, server.ClosedHandshakeTimeout: true,
		server.ClosedTLS: true, server.ClosedDisplaced: true,
	}
	m := New(Config{})
	for _, reason := range server.CloseReasons() {
		m.ConnectionOpened()
		m.ConnectionClosed(reason, time.Second)
	}
	m.AcceptFailed(errors.New("too many open files"))
	for _, reason := range server.CloseReasons() {
		if value(t, m, "ticketing_connections_closed_total", string(reason)) != 1 {
			t.Errorf("%s is not counted", reason)
		}
		if handshake[reason] && value(t, m, "ticketing_handshake_failures_total", string(reason)) != 1 {
			t.Errorf("%s is not counted as the handshake's failure", reason)
		}
	}
	if n := len(families(t, m)["ticketing_handshake_failures_total"].GetMetric()); n != len(handshake) {
		t.Errorf("%d reasons for a handshake's failure, want %d", n, len(handshake))
	}
	if value(t, m, "ticketing_connections_accepted_total") != float64(len(server.CloseReasons())) || value(t, m, "ticketing_accept_failures_total") != 1 {
		t.Error("accepts are not counted")
	}
}
