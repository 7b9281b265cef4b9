package wire

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Op is the first byte of a frame.
type Op byte

// Ops of requests and replies (docs/PROTOCOL.md, section 2).
const (
	// OpAcquire asks for a key, or as a reply grants it.
	OpAcquire Op = 'A'
	// OpRelease gives a grant back, or as a reply says that it is given back.
	OpRelease Op = 'R'
	// OpTimeout says that an acquire was not granted in its time.
	OpTimeout Op = 'T'
	// OpBusy says that an acquire was certainly not granted, for want of capacity.
	OpBusy Op = 'B'
	// OpNotCurrent says that a release named a token that is not the current one.
	OpNotCurrent Op = 'N'
	// OpMoved names the leader and ends the session.
	OpMoved Op = 'M'
	// OpLeader names the leader.
	OpLeader Op = 'L'
	// OpError gives the reason why the server ends the session.
	OpError Op = 'E'
	// OpEmpty is an empty frame: a keep-alive, and as the first frame of a session
	// the ready frame of a single server.
	OpEmpty Op = '\n'
)

// Request is one frame from a client to a server.
type Request struct {
	Op    Op     // OpAcquire or OpRelease
	Wait  uint8  // acquire: the longest time in the queue in seconds; 0 is one immediate attempt
	Lease uint8  // acquire: how long the grant lasts, in seconds
	Owner uint64 // acquire: a number that comes back with the reply
	Token uint64 // release: the token of the grant; 0 is a probe
	Key   string
}

// Reply is one frame from a server to a client.
type Reply struct {
	Op    Op
	Token uint64 // OpAcquire, OpRelease, OpNotCurrent
	Owner uint64 // OpAcquire, OpTimeout, OpBusy
	Text  string // the key; the leader's host:port (OpMoved, OpLeader); the Reason (OpError)
}

// Append appends the request's frame, newline included, to dst. It checks
// nothing: what it is given must be valid.
func (r Request) Append(dst []byte) []byte {
	if r.Op == OpAcquire {
		dst = append(dst, byte(OpAcquire), r.Wait, r.Lease)
		dst = binary.BigEndian.AppendUint64(dst, r.Owner)
	} else {
		dst = append(dst, byte(OpRelease))
		dst = binary.BigEndian.AppendUint64(dst, r.Token)
	}
	dst = append(dst, r.Key...)
	return append(dst, '\n')
}

// Append appends the reply's frame, newline included, to dst. It checks nothing:
// what it is given must be valid.
func (r Reply) Append(dst []byte) []byte {
	if r.Op == OpEmpty {
		return append(dst, '\n')
	}
	dst = append(dst, byte(r.Op))
	switch r.Op {
	case OpAcquire:
		dst = binary.BigEndian.AppendUint64(dst, r.Token)
		dst = binary.BigEndian.AppendUint64(dst, r.Owner)
	case OpTimeout, OpBusy:
		dst = binary.BigEndian.AppendUint64(dst, r.Owner)
	case OpRelease, OpNotCurrent:
		dst = binary.BigEndian.AppendUint64(dst, r.Token)
	}
	dst = append(dst, r.Text...)
	return append(dst, '\n')
}

// ValidKey says whether key may be sent: 1 to MaxKey bytes of UTF-8 without a
// space or a newline (section 2).
func ValidKey(key string) bool {
	return len(key) >= 1 && len(key) <= MaxKey &&
		strings.IndexByte(key, ' ') < 0 && strings.IndexByte(key, '\n') < 0 &&
		utf8.ValidString(key)
}
