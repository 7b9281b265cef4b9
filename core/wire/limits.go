package wire

import "time"

// Limits of a frame and of the handshake (docs/PROTOCOL.md, sections 1 and 2).
const (
	// DefaultPort is the TCP port of a server that is told no other.
	DefaultPort = 5225

	// MaxFrame is the longest frame in bytes, without its newline. It bounds
	// what a decoder keeps of a frame that has not ended.
	MaxFrame = 192

	// MaxKey is the longest key in bytes, so that the largest frame that carries
	// one (a granted reply, 146 bytes) stays well inside MaxFrame.
	MaxKey = 128

	// MaxAddr is the longest address in bytes that an M or L can carry: a frame
	// less its op byte.
	MaxAddr = MaxFrame - 1

	// MaxHandshakeLine is the longest handshake line in bytes, without its
	// newline. It bounds what a stranger can make either side keep.
	MaxHandshakeLine = 256

	// NonceLen is the length of a nonce in base64url characters (48 random bits).
	NonceLen = 8

	// DigestLen is the length of a digest: SHA-256 in base64url without padding.
	DigestLen = 43
)

// Ranges of the times in an acquire, in whole seconds (section 2).
const (
	// MaxWait is the longest wait in the queue; 0 asks for one immediate attempt.
	MaxWait = 255
	// MinLease is the shortest lease; 0 is reserved.
	MinLease = 1
	// MaxLease is the longest lease; 251 to 255 are reserved.
	MaxLease = 250
)

// Times of a session (sections 1, 2 and 4).
const (
	// HandshakeTimeout bounds a handshake, TLS negotiation included, so that a
	// silent stranger can't keep a connection.
	HandshakeTimeout = 10 * time.Second
	// RefusalDelay is the time between a digest that matches no client token and
	// the refusal: published clients dial again at once.
	RefusalDelay = 250 * time.Millisecond
	// FrameTimeout is how long a frame that has begun may go without a byte.
	FrameTimeout = 5 * time.Second
	// WriteTimeout is how long a write may make no progress.
	WriteTimeout = 5 * time.Second
	// SlowWrite is how long a write may be under way while MaxPendingReplies wait
	// behind it.
	SlowWrite = time.Second
	// LingerTimeout bounds how long input is dropped after an error was sent, lest
	// a reset swallow the reason.
	LingerTimeout = time.Second
)

// Sizes of a server's lanes and buffers (section 4).
const (
	// LingerBytes bounds how much input is dropped after an error was sent.
	LingerBytes = 64 << 10
	// ReadBuffer is how much is read from a connection at once, in bytes: some
	// hundred requests, and small enough to have one for each busy connection.
	ReadBuffer = 4096
	// MaxWriteBatch is how many replies go into one write, so that a write stays
	// under 10 KiB.
	MaxWriteBatch = 64
	// MaxPendingReplies is how many replies may wait on one connection before it
	// is no longer read.
	MaxPendingReplies = 256
	// MaxAcquiresInFlight is how many acquires may be parsed and not yet granted,
	// queued or refused, over all connections.
	MaxAcquiresInFlight = 4096
	// MaxReleasesInFlight is how many releases may be parsed and not yet answered,
	// over all connections. Acquires can't take their room.
	MaxReleasesInFlight = 512
	// MaxKeysSingle is how many keys may be active on a single server.
	MaxKeysSingle = 1 << 20
	// MaxKeysCluster is how many keys may be active in a cluster.
	MaxKeysCluster = 1 << 16
)

// Limits that an operator sets: each default and its highest value (section 4).
const (
	DefaultWaitersPerKey = 2048
	MaxWaitersPerKey     = 16384

	DefaultWaiters = 16384
	MaxWaiters     = 65536

	DefaultConnections = 1024
	MaxConnections     = 8192

	// UnauthenticatedShare is the part of the connections that may be in their
	// handshake: one in four. Beyond it the oldest such is closed.
	UnauthenticatedShare = 4
)
