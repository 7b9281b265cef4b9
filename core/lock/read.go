package lock

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
)

// maxRecord bounds what Read decodes at once in bytes: the head, a member, a
// removed id or a grant. A member is the largest of them.
const maxRecord = 1 + 3*(2+MaxMemberText)

// Read reads what Snapshot.WriteTo wrote, up to the end of r. It returns a machine
// only when the whole of it is sound: the checksum, and that the state is one a
// machine can be in. It fails with ErrCorrupt, with ErrTooNew, or with an error of r.
// It keeps no more memory than what it has read needs.
func Read(r io.Reader) (*Machine, error) {
	m, err := read(r)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return m, nil
}

func read(from io.Reader) (*Machine, error) {
	r := snapshotReader{from: bufio.NewReaderSize(from, snapshotChunk), sum: sha256.New()}
	head, err := r.head()
	if err != nil {
		return nil, err
	}
	m := New()
	m.clock, m.tokens, m.level = head.clock, head.tokens, head.level
	if err := r.members(m, head.members, head.removed); err != nil {
		return nil, err
	}
	if err := r.grants(m, head.grants); err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if m.level > Level {
		return nil, fmt.Errorf("level %d is unknown here: %w", m.level, ErrTooNew)
	}
	return m, nil
}

// head is what a snapshot begins with.
type head struct {
	version                  byte
	clock                    clock
	tokens                   tokens
	level                    uint32
	members, removed, grants int
}

func (h *head) sound() bool {
	c, t := &h.clock, &h.tokens
	return h.level > 0 &&
		(c.quiet == 0 || c.quiet > c.now && c.quiet-c.now <= maxLease) &&
		(t.begun || !t.used) && t.last >= t.jumped &&
		h.members <= MaxMembers && h.removed <= MaxRemoved && h.grants <= maxGrants
}

// snapshotReader reads a snapshot record by record and sums it up.
type snapshotReader struct {
	from *bufio.Reader
	sum  hash.Hash
}

// record decodes one record. What it decodes has at most maxRecord bytes.
func (r *snapshotReader) record(what string, decode func(d *decoder)) error {
	ahead, err := r.from.Peek(maxRecord)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	d := decoder{src: ahead}
	decode(&d)
	if d.bad {
		return fmt.Errorf("%s: %w", what, ErrCorrupt)
	}
	n := len(ahead) - len(d.src)
	r.sum.Write(ahead[:n])
	_, err = r.from.Discard(n)
	return err
}

func (r *snapshotReader) head() (h head, err error) {
	err = r.record("head", func(d *decoder) {
		if string(d.take(len(snapshotMagic))) != snapshotMagic {
			d.fail()
			return
		}
		h.version = d.byte()
		if h.version > snapshotVersion {
			return // the rest may be anything
		}
		h.level = d.uint32()
		h.clock.reign = d.uint64()
		h.clock.elapsed = d.time(math.MaxInt64)
		h.clock.now = d.time(maxTime)
		h.clock.quiet = d.time(maxTime + maxLease)
		h.tokens = tokens{begun: d.bool(), used: d.bool(), lost: d.bool(), jumped: d.uint64(), last: d.uint64()}
		h.members, h.removed, h.grants = int(d.uint16()), int(d.uint16()), int(d.uint32())
		if h.version == 0 || !h.sound() {
			d.fail()
		}
	})
	if err == nil && h.version > snapshotVersion {
		err = fmt.Errorf("form %d is unknown here: %w", h.version, ErrTooNew)
	}
	return h, err
}

func (r *snapshotReader) members(m *Machine, current, removed int) error {
	ms := &m.members
	for range current {
		err := r.record("member", func(d *decoder) {
			next := d.member()
			if !next.valid() || next.Removed || len(ms.current) > 0 && ms.current[len(ms.current)-1].ID >= next.ID {
				d.fail()
				return
			}
			ms.current = append(ms.current, next)
		})
		if err != nil {
			return err
		}
	}
	for range removed {
		err := r.record("removed id", func(d *decoder) {
			gone := Member{ID: d.text()}
			_, known := slices.BinarySearchFunc(ms.current, gone.ID, byID)
			if !gone.valid() || known || slices.Contains(ms.removed, gone.ID) {
				d.fail()
				return
			}
			ms.removed = append(ms.removed, gone.ID)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *snapshotReader) grants(m *Machine, count int) error {
	before := uint64(0) // the token of the grant before
	for range count {
		err := r.record("grant", func(d *decoder) {
			g := grant{key: d.short(MaxKey)}
			token := d.uint64()
			g.owner = d.uint64()
			deadline := d.time(maxTime + maxLease)
			g.lease = d.time(maxLease)
			g.holder = d.short(MaxHolder)
			_, twice := m.grants[g.key]
			granted := deadline - g.lease
			if d.bad || twice || token <= before || token > m.tokens.last || !m.tokens.used || granted < 0 || granted > m.clock.now {
				d.fail()
				return
			}
			before = token
			m.add(&g, deadline, token)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end checks the sum, and that nothing follows it.
func (r *snapshotReader) end() error {
	want := r.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.from, got); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("cut short: %w", ErrCorrupt)
		}
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("the checksum is wrong: %w", ErrCorrupt)
	}
	switch _, err := r.from.ReadByte(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("something follows the checksum: %w", ErrCorrupt)
}
