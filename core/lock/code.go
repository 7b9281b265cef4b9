package lock

import (
	"encoding/binary"
	"errors"
	"time"
)

var (
	// ErrTooNew: the bytes are of a newer version of the program, or ask for
	// something that this one does not know. Nothing is wrong with them; a node
	// that has to apply them must be upgraded.
	ErrTooNew = errors.New("made by a newer version")
	// ErrCorrupt: the bytes are not what any version writes.
	ErrCorrupt = errors.New("corrupt")
)

// Numbers are big-endian and of fixed width, so that a state has one encoding and
// no other. Keys and holders have a length of one byte before them, the texts of
// members one of two.

// appendShort appends a key or a holder. One that no decoder takes must not come
// into a log: every node would stop at it, at each start.
func appendShort(dst []byte, s string, most int) []byte {
	if len(s) > most {
		panic("lock: a key or holder is too long to be encoded")
	}
	return append(append(dst, byte(len(s))), s...)
}

func appendText(dst []byte, s string) []byte {
	const most = 1<<16 - 1
	if len(s) > most {
		panic("lock: a member's text is too long to be encoded")
	}
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
}

func appendTime(dst []byte, d time.Duration) []byte {
	if d < 0 {
		panic("lock: a negative time can't be encoded")
	}
	return appendUint64(dst, uint64(d))
}

func appendLease(dst []byte, d time.Duration) []byte {
	if d > maxLease {
		panic("lock: a lease is too long to be encoded")
	}
	return appendTime(dst, d)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

func appendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

func appendMember(dst []byte, m *Member) []byte {
	dst = appendBool(dst, m.Removed)
	dst = appendText(dst, m.ID)
	dst = appendText(dst, m.Client)
	return appendText(dst, m.Admin)
}

// decoder takes values off the front of src. Once something is missing or wrong it
// is bad, and all it returns is zero.
type decoder struct {
	src []byte
	bad bool
}

func (d *decoder) fail() {
	d.src, d.bad = nil, true
}

func (d *decoder) take(n int) []byte {
	if n > len(d.src) {
		d.fail()
		return nil
	}
	b := d.src[:n]
	d.src = d.src[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.byte()
	if b > 1 {
		d.fail()
	}
	return b == 1
}

func (d *decoder) uint16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// time takes a time or a length of time of at most the given one.
func (d *decoder) time(most time.Duration) time.Duration {
	v := d.uint64()
	if v > uint64(most) {
		d.fail()
		return 0
	}
	return time.Duration(v)
}

func (d *decoder) short(most int) string {
	n := int(d.byte())
	if n > most {
		d.fail()
	}
	return string(d.take(n))
}

func (d *decoder) text() string { return string(d.take(int(d.uint16()))) }

func (d *decoder) member() Member {
	return Member{Removed: d.bool(), ID: d.text(), Client: d.text(), Admin: d.text()}
}
