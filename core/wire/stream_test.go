package wire_test

import (
	"slices"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

// decoder is what both decoders are to a test.
type decoder[F comparable] interface {
	Feed(data []byte)
	Next() (F, bool)
	Err() error
	Partial() bool
}

// outcome is everything that a stream of bytes comes to.
type outcome[F comparable] struct {
	frames  []F
	err     error
	partial bool // without meaning after a fault
}

func (o outcome[F]) equal(other outcome[F]) bool {
	return slices.Equal(o.frames, other.frames) && o.err == other.err &&
		(o.err != nil || o.partial == other.partial)
}

// decode feeds the chunks one after the other. Each chunk is wiped once it has
// been decoded, as a connection's read buffer is: a decoder that still looked at
// it would give other frames.
func decode[F comparable](d decoder[F], chunks ...[]byte) outcome[F] {
	var got outcome[F]
	var buf []byte
	for _, chunk := range chunks {
		buf = append(buf[:0], chunk...)
		d.Feed(buf)
		for f, ok := d.Next(); ok; f, ok = d.Next() {
			got.frames = append(got.frames, f)
		}
		for i := range buf {
			buf[i] = 0xEE
		}
	}
	got.err, got.partial = d.Err(), d.Partial()
	return got
}

func decodeRequests(chunks ...[]byte) outcome[wire.Request] {
	return decode(new(wire.RequestDecoder), chunks...)
}

func decodeReplies(chunks ...[]byte) outcome[wire.Reply] {
	return decode(new(wire.ReplyDecoder), chunks...)
}

// bytewise cuts a stream into chunks of one byte.
func bytewise(stream []byte) [][]byte {
	return slices.Collect(slices.Chunk(stream, 1))
}

// checkEveryCut cuts a stream at every byte and at every pair of bytes, and into
// single bytes: the frames and the fault stay what the whole stream gives.
func checkEveryCut[F comparable](t *testing.T, decodeChunks func(...[]byte) outcome[F], stream []byte) {
	t.Helper()
	want := decodeChunks(stream)
	if got := decodeChunks(bytewise(stream)...); !got.equal(want) {
		t.Errorf("byte by byte: got %+v, whole: %+v", got, want)
	}
	for i := range len(stream) + 1 {
		for j := i; j <= len(stream); j++ {
			if got := decodeChunks(stream[:i], stream[i:j], stream[j:]); !got.equal(want) {
				t.Fatalf("cut at %d and %d: got %+v, whole: %+v", i, j, got, want)
			}
		}
	}
}
