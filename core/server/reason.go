package server

import "github.com/ticketing-io/ticketing/core/wire"

// CloseReason says why a connection ended. The set is closed, so that it can be
// counted by.
type CloseReason string

const (
	// ClosedByClient: the client closed between frames.
	ClosedByClient CloseReason = "client_closed"
	// ClosedReset: the connection broke: a reset, or a peer that is gone without a
	// word.
	ClosedReset CloseReason = "reset"
	// ClosedLimit: there were as many connections as are allowed.
	ClosedLimit CloseReason = "limit"
	// ClosedDisplaced: it was the oldest in its handshake when there were too many
	// such.
	ClosedDisplaced CloseReason = "displaced"
	// ClosedHandshake: it ended, or sent a line that is too long, in its handshake.
	ClosedHandshake CloseReason = "handshake_broken"
	// ClosedHandshakeTimeout: its handshake took too long.
	ClosedHandshakeTimeout CloseReason = "handshake_timeout"
	// ClosedTLS: TLS could not be agreed on, a missing client certificate included.
	ClosedTLS CloseReason = "tls_failed"
	// ClosedSlow: it does not read its answers.
	ClosedSlow CloseReason = "slow"
	// ClosedWrite: writing to it failed.
	ClosedWrite CloseReason = "write_failed"
	// ClosedDrain: the server stops.
	ClosedDrain CloseReason = "drain"

	// ClosedMoved: the client was told which node leads instead of this one.
	ClosedMoved CloseReason = "moved"

	// The rest are sent to the client as the reason of an E.
	ClosedAuth      = CloseReason(wire.AuthFailed)
	ClosedOp        = CloseReason(wire.BadOp)
	ClosedRequest   = CloseReason(wire.BadRequest)
	ClosedLine      = CloseReason(wire.LineTooLong)
	ClosedLease     = CloseReason(wire.BadLease)
	ClosedKey       = CloseReason(wire.BadKey)
	ClosedNotActive = CloseReason(wire.NotActive)
	ClosedNoLeader  = CloseReason(wire.NoLeader)
)

// CloseReasons lists every reason, for those who count.
func CloseReasons() []CloseReason {
	return []CloseReason{
		ClosedByClient, ClosedReset, ClosedLimit, ClosedDisplaced, ClosedHandshake,
		ClosedHandshakeTimeout, ClosedTLS, ClosedSlow, ClosedWrite, ClosedDrain, ClosedMoved,
		ClosedAuth, ClosedOp, ClosedRequest, ClosedLine, ClosedLease, ClosedKey,
		ClosedNotActive, ClosedNoLeader,
	}
}
