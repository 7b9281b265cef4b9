package wire

// Reason is the text of an E reply, and the error of a decoder that met a fault
// (docs/PROTOCOL.md, section 2, Errors). Every reason ends the session; what it
// asked for and got no answer to may or may not have happened.
type Reason string

const (
	// BadOp: the first byte of a frame is no known op.
	BadOp Reason = "bad_op"
	// BadRequest: a frame broke off: its sender closed inside it, or stalled.
	BadRequest Reason = "bad_request"
	// LineTooLong: more than MaxFrame bytes came without a newline.
	LineTooLong Reason = "line_too_long"
	// BadLease: the lease of an acquire is outside MinLease to MaxLease.
	BadLease Reason = "bad_lease"
	// BadKey: a key is empty, over MaxKey bytes, has a space, or is not UTF-8.
	BadKey Reason = "bad_key"
	// AuthFailed: the digest matches no client token. Nothing was asked yet.
	AuthFailed Reason = "auth_failed"
	// NotActive: the node drains, can't serve yet, or has used up its tokens.
	NotActive Reason = "not_active"
	// NoLeader: a cluster node that knows no leader.
	NoLeader Reason = "no_leader"
)

// Faults that only a client meets, in a server's reply. They are never sent.
const (
	// BadToken: a grant or a release carries token 0, which is never granted.
	BadToken Reason = "bad_token"
	// BadText: an address or a reason is empty.
	BadText Reason = "bad_text"
)

// Error returns the reason as it stands on the wire.
func (r Reason) Error() string { return string(r) }
