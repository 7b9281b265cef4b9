package lock

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
)

// snapshotMagic and snapshotVersion begin a snapshot. Then come
//
//	level (4), reign (8), elapsed (8), time (8), end of the quiet period (8)
//	tokens: begun (1), used (1), lost (1), jumped (8), last (8)
//	number of members (2), of removed ids (2), of grants (4)
//	members by id, as in entries; removed ids in the order of their removal
//	grants by token: key, token (8), owner (8), deadline (8), lease (8), holder
//	the SHA-256 of all before it (32)
//
// A later version reads this form, and writes it as long as the level is 1.
const (
	snapshotMagic   = "ticketing snapshot"
	snapshotVersion = 1
)

const (
	// maxGrants bounds what Read takes: the most that any server holds
	// (docs/PROTOCOL.md, section 4).
	maxGrants = 1 << 20
	// snapshotChunk is how many bytes are encoded before they are written.
	snapshotChunk = 64 << 10
)

// Snapshot is a copy of a machine's state. It must not be used by two goroutines
// at once.
type Snapshot struct {
	clock   clock
	tokens  tokens
	level   uint32
	members members
	grants  []*grant // the machine's own: nothing in one changes but its place in the heap
}

// Snapshot returns a copy of the state, which later entries don't change. It copies
// and nothing else: sorting and encoding are left to WriteTo, which another
// goroutine may call while the machine goes on.
func (m *Machine) Snapshot() *Snapshot {
	return &Snapshot{
		clock: m.clock, tokens: m.tokens, level: m.level, members: m.members.clone(),
		grants: slices.AppendSeq(make([]*grant, 0, len(m.grants)), maps.Values(m.grants)),
	}
}

// Digest returns the SHA-256 of the state's encoding: the same for machines that
// applied the same entries, whether all of them or some by way of a snapshot.
func Digest(m *Machine) [32]byte {
	w := snapshotWriter{to: io.Discard, sum: sha256.New()}
	m.Snapshot().encode(&w)
	return w.digest()
}

// WriteTo writes the snapshot's encoding, the same for equal states, and returns
// how many bytes it wrote. Its errors are those of w.
func (s *Snapshot) WriteTo(to io.Writer) (int64, error) {
	w := snapshotWriter{to: to, sum: sha256.New()}
	s.encode(&w)
	sum := w.digest()
	w.write(sum[:])
	if w.err != nil {
		return w.written, fmt.Errorf("write snapshot: %w", w.err)
	}
	return w.written, nil
}

func (s *Snapshot) encode(w *snapshotWriter) {
	w.buf = s.appendHead(w.buf)
	for i := range s.members.current {
		w.buf = appendMember(w.buf, &s.members.current[i])
	}
	for _, id := range s.members.removed {
		w.buf = appendText(w.buf, id)
	}
	slices.SortFunc(s.grants, func(a, b *grant) int { return cmp.Compare(a.token(), b.token()) })
	for _, g := range s.grants {
		w.buf = appendGrant(w.buf, g)
		if len(w.buf) >= snapshotChunk {
			w.flush()
		}
	}
	w.flush()
}

func (s *Snapshot) appendHead(b []byte) []byte {
	b = append(append(b, snapshotMagic...), snapshotVersion)
	b = appendUint32(b, s.level)
	b = appendUint64(b, s.clock.reign)
	b = appendTime(b, s.clock.elapsed)
	b = appendTime(b, s.clock.now)
	b = appendTime(b, s.clock.quiet)
	b = appendBool(b, s.tokens.begun)
	b = appendBool(b, s.tokens.used)
	b = appendBool(b, s.tokens.lost)
	b = appendUint64(b, s.tokens.jumped)
	b = appendUint64(b, s.tokens.last)
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.members.current)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.members.removed)))
	return appendUint32(b, uint32(len(s.grants)))
}

func appendGrant(b []byte, g *grant) []byte {
	b = appendShort(b, g.key, MaxKey)
	b = appendUint64(b, g.token())
	b = appendUint64(b, g.owner)
	b = appendTime(b, g.DueAt())
	b = appendLease(b, g.lease)
	return appendShort(b, g.holder, MaxHolder)
}

// snapshotWriter sums up and writes what is put into its buffer.
type snapshotWriter struct {
	to      io.Writer
	sum     hash.Hash
	buf     []byte
	written int64
	err     error // the first one; nothing is written after it
}

func (w *snapshotWriter) flush() {
	w.sum.Write(w.buf)
	w.write(w.buf)
	w.buf = w.buf[:0]
}

func (w *snapshotWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.to.Write(b)
	w.written += int64(n)
	w.err = err
}

func (w *snapshotWriter) digest() (sum [32]byte) {
	w.sum.Sum(sum[:0])
	return sum
}
