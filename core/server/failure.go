package server

import (
	"context"
	"log/slog"
	"time"
)

// failure is how the log tells that a client did not get in.
type failure struct {
	level slog.Level
	text  string // one for each reason, lest a flood of one hides another where lines are left out
}

// failures are the reasons for which a client did not get in, other than the server's end. Those
// at level warn are somebody's to mend: a token, a certificate, a limit.
var failures = map[CloseReason]failure{
	ClosedAuth:             {slog.LevelWarn, "refused a client: its token is none of the client tokens"},
	ClosedTLS:              {slog.LevelWarn, "refused a client: no TLS could be agreed on"},
	ClosedLimit:            {slog.LevelWarn, "refused a connection: there are as many as may be"},
	ClosedDisplaced:        {slog.LevelWarn, "dropped a connection in its handshake for a newer one: too many are in theirs"},
	ClosedHandshakeTimeout: {slog.LevelInfo, "dropped a connection: its handshake took too long"},
	ClosedHandshake:        {slog.LevelInfo, "a connection broke off in its handshake"},
}

// report tells how a connection has ended.
func (s *Server) report(c *conn, reason CloseReason) {
	lasted := time.Since(c.opened)
	s.observer.ConnectionClosed(reason, lasted)
	if f, ok := failures[reason]; ok {
		s.logFailure(c, f, reason)
	}
	s.log.Debug("connection closed", "remote", c.nc.RemoteAddr(), "client", c.client, "reason", string(reason), "lasted", lasted)
}

// logFailure says why a client did not get in. One that went away without a word is
// a port scan or a health check, and most of them come again and again.
func (s *Server) logFailure(c *conn, f failure, reason CloseReason) {
	level := f.level
	if c.failure != nil && !c.heard {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.Any("remote", c.nc.RemoteAddr()), slog.String("reason", string(reason))}
	if c.failure != nil {
		attrs = append(attrs, slog.Any("error", c.failure))
	}
	if reason == ClosedLimit {
		attrs = append(attrs, slog.Int("max", s.max))
	}
	s.log.LogAttrs(context.Background(), level, f.text, attrs...)
}
