package replica

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// The format of raft-wal's segment files, from its segment/format.go: a header, then
// frames that are padded to eight bytes. A batch is some entries, an index of the whole
// file if it is the last batch, and a commit, which has the checksum of the batch.
const (
	segmentMagic     = 0x58eb6b0d // and its version, 0
	segmentHeaderLen = 32         // bytes
	frameHeaderLen   = 8          // bytes
	frameEntry       = 1
	frameIndex       = 2
	frameCommit      = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openLog opens the log in dir and mends first what wal.Open does not.
func openLog(dir string, size uint32, vfs types.VFS, meta types.MetaStore, logger hclog.Logger) (*wal.WAL, error) {
	log, err := func() (*wal.WAL, error) {
		if err := repairTail(dir, size, vfs, meta, logger); err != nil {
			return nil, err
		}
		return wal.Open(dir, wal.WithSegmentSize(int(size)), wal.WithSegmentFiler(segment.NewFiler(dir, vfs)), wal.WithMetaStore(meta), wal.WithLogger(logger))
	}()
	if err != nil {
		// wal.Open leaves the metadata open, and so locked: the next try would wait for ever.
		return nil, errors.Join(err, meta.Close())
	}
	return log, nil
}

// repairTail mends the log's last segment, to which wal.Open would append:
//
//   - Its last batch has the index: the segment is full, but the metadata does not say so
//     and there is no next one. wal.Open takes it for the tail, and it refuses every entry.
//     It is left so by a crash, an error or wal's Close between the write and the change
//     to the next segment. The change is finished.
//   - Its last batch is torn: wal.Open may find the index in it and refuse as well. What
//     stays of it behind a later, shorter batch may be read as entries. It is wiped.
//   - It has no entry: it may lack the space that is set aside for it, since the disk was
//     full. It is deleted, and wal.Open makes it anew.
//
// What is kept is synced, since raft counts it as durable, though its write may have been
// cut off before the sync.
func repairTail(dir string, size uint32, vfs types.VFS, meta types.MetaStore, logger hclog.Logger) error {
	state, err := meta.Load(dir)
	if err != nil {
		return err
	}
	if len(state.Segments) == 0 {
		return nil
	}
	state.Segments = slices.Clone(state.Segments)
	tail := &state.Segments[len(state.Segments)-1]
	if !tail.SealTime.IsZero() {
		return nil
	}
	name := segment.FileName(*tail)
	f, err := vfs.OpenWriter(dir, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // wal.Open makes it
	}
	if err != nil {
		return err
	}
	defer f.Close() // what was written is synced below
	batches, err := readBatches(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if batches.entries == 0 {
		return vfs.Delete(dir, name)
	}
	wiped, err := wipe(f, batches.end)
	if err != nil {
		return fmt.Errorf("wipe the end of %s: %w", name, err)
	}
	if wiped {
		logger.Warn("the last write to the log was cut off: removed what there is of it", "file", name)
	}
	if err := errors.Join(f.Sync(), syncDir(dir)); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	if batches.indexStart == 0 {
		return nil
	}
	now := time.Now()
	tail.SealTime, tail.IndexStart, tail.MaxIndex = now, batches.indexStart, tail.BaseIndex+batches.entries-1
	next := tail.MaxIndex + 1
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: next, MinIndex: next, SizeLimit: size, Codec: tail.Codec, CreateTime: now,
	})
	state.NextSegmentID++
	logger.Info("the log's last segment is full: the change to the next one was finished", "file", name)
	return meta.CommitState(state)
}

// batches is the whole batches that a segment's file begins with.
type batches struct {
	entries    uint64
	indexStart uint64 // where the index is in the file, behind its frame's header; 0: there is none
	end        int64  // where the last one ends
}

// readBatches reads a segment's file. An error wrapping types.ErrCorrupt when a batch
// that is not whole comes before one that is: that is no write that was cut off.
func readBatches(f io.ReaderAt) (batches, error) {
	var whole, here batches
	torn := false
	sum := crc32.New(castagnoli)
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, math.MaxInt64), 64<<10)
	var header [segmentHeaderLen]byte
	if err := readFull(r, header[:]); err != nil {
		return whole, unlessEnd(err)
	}
	if magic := binary.LittleEndian.Uint64(header[:]); magic != segmentMagic && magic != 0 {
		return whole, fmt.Errorf("%w: it is no segment of a log, or of another version", types.ErrCorrupt)
	}
	sum.Write(header[:])
	here.end = segmentHeaderLen
	for {
		var frame [frameHeaderLen]byte
		if err := readFull(r, frame[:]); err != nil {
			return whole, unlessEnd(err)
		}
		here.end += frameHeaderLen
		value := binary.LittleEndian.Uint32(frame[4:])
		switch frame[0] {
		case frameCommit:
			switch {
			case value != sum.Sum32():
				torn = true
			case torn:
				return whole, fmt.Errorf("%w: what was written before byte %d was changed since", types.ErrCorrupt, here.end)
			default:
				whole = here
			}
			sum.Reset()
			continue
		case frameEntry:
			here.entries++
		case frameIndex:
			here.indexStart = uint64(here.end)
		default:
			return whole, nil // zeros, or the middle of what was cut off
		}
		padded := (int64(value) + 7) &^ 7
		sum.Write(frame[:])
		if _, err := io.CopyN(sum, r, padded); err != nil {
			return whole, unlessEnd(err)
		}
		here.end += padded
	}
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return err
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// wipe makes everything from an offset on zero, and says whether something was not. It
// doesn't cut the file, so that the space that was set aside stays so.
func wipe(f types.WritableFile, from int64) (wiped bool, err error) {
	b, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(b, from)
		if string(b[:n]) != string(zeros[:n]) {
			wiped = true
			if _, err := f.WriteAt(zeros[:n], from); err != nil {
				return wiped, err
			}
		}
		if err != nil {
			return wiped, unlessEnd(err)
		}
		from += int64(n)
	}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
