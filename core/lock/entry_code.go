package lock

import (
	"fmt"
	"math"
	"slices"
)

// entryVersion is the form of an entry's encoding: that byte, First, Reign and
// Elapsed (8 bytes each), the number of commands (4) and the commands, each one its
// kind (1) and then
//
//	grant    key, owner (8), lease (8), holder
//	release  key, token (8)
//	member   removed (1), id, client and admin address
//	level    level (4)
const entryVersion = 1

// leastCommand is the size of the smallest command in bytes.
const leastCommand = 1 + 4

// AppendEntry appends the encoding of the entry to dst. It panics when the entry
// has a command that DecodeEntry would not take: a longer key or holder than MaxKey
// and MaxHolder, a negative time, a level above Level, an unknown kind, a member
// with a text above 64 KiB or none at all.
func AppendEntry(dst []byte, e *Entry) []byte {
	dst = append(dst, entryVersion)
	dst = appendUint64(dst, e.First)
	dst = appendUint64(dst, e.Reign)
	dst = appendTime(dst, e.Elapsed)
	dst = appendUint32(dst, uint32(len(e.Commands)))
	for i := range e.Commands {
		dst = appendCommand(dst, &e.Commands[i])
	}
	return dst
}

func appendCommand(dst []byte, c *Command) []byte {
	dst = append(dst, byte(c.Kind))
	switch c.Kind {
	case KindGrant:
		dst = appendShort(dst, c.Key, MaxKey)
		dst = appendUint64(dst, c.Owner)
		dst = appendLease(dst, c.Lease)
		return appendShort(dst, c.Holder, MaxHolder)
	case KindRelease:
		return appendUint64(appendShort(dst, c.Key, MaxKey), c.Token)
	case KindMember:
		return appendMember(dst, c.Member)
	case KindLevel:
		if c.Level <= Level {
			return appendUint32(dst, c.Level)
		}
	}
	panic("lock: an unknown kind or level can't be encoded")
}

// DecodeEntry decodes src, the whole of it, into e, whose Commands it reuses. The
// entry keeps nothing of src. It fails with ErrTooNew or ErrCorrupt, and e is of no
// use then.
func DecodeEntry(src []byte, e *Entry) error {
	d := decoder{src: src}
	switch version := d.byte(); {
	case version > entryVersion:
		return fmt.Errorf("entry: form %d is unknown here: %w", version, ErrTooNew)
	case version < entryVersion:
		return fmt.Errorf("entry: %w", ErrCorrupt)
	}
	e.First, e.Reign, e.Elapsed = d.uint64(), d.uint64(), d.time(math.MaxInt64)
	count := int(d.uint32())
	e.Commands = e.Commands[:0]
	if count > len(d.src)/leastCommand {
		return fmt.Errorf("entry: %d commands in %d bytes: %w", count, len(d.src), ErrCorrupt)
	}
	e.Commands = slices.Grow(e.Commands, count)[:count]
	for i := range e.Commands {
		if err := d.command(&e.Commands[i]); err != nil {
			return fmt.Errorf("entry: command %d of %d: %w", i+1, count, err)
		}
	}
	if d.bad || len(d.src) > 0 {
		return fmt.Errorf("entry: %w", ErrCorrupt)
	}
	return nil
}

func (d *decoder) command(c *Command) error {
	*c = Command{Kind: Kind(d.byte())}
	switch c.Kind {
	case KindGrant:
		c.Key, c.Owner, c.Lease, c.Holder = d.short(MaxKey), d.uint64(), d.time(maxLease), d.short(MaxHolder)
	case KindRelease:
		c.Key, c.Token = d.short(MaxKey), d.uint64()
	case KindMember:
		m := d.member()
		c.Member = &m
	case KindLevel:
		c.Level = d.uint32()
	}
	switch {
	case d.bad || c.Kind == 0:
		return ErrCorrupt
	case c.Kind > KindLevel:
		return fmt.Errorf("kind %d is unknown here: %w", c.Kind, ErrTooNew)
	case c.Level > Level:
		return fmt.Errorf("level %d is unknown here: %w", c.Level, ErrTooNew)
	}
	return nil
}
