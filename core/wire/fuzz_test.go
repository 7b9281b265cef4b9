package wire_test

import (
	"bytes"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

// FuzzRequestDecoder: whatever a client sends, and however it is cut, a decoder
// gives the same requests, which encode to the bytes they came from.
func FuzzRequestDecoder(f *testing.F) {
	for _, stream := range loadVectors(f).streams("request") {
		f.Add(stream, []byte{3, 1, 9})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		got := fuzzDecoder(t, decodeRequests, stream, cuts)
		var encoded [][]byte
		for _, r := range got.frames {
			if !wire.ValidKey(r.Key) {
				t.Fatalf("a request with the bad key %q", r.Key)
			}
			encoded = append(encoded, r.Append(nil))
		}
		checkConsumed(t, stream, encoded, got.err, got.partial)
	})
}

// FuzzReplyDecoder is the same for whatever a server sends.
func FuzzReplyDecoder(f *testing.F) {
	for _, stream := range loadVectors(f).streams("reply") {
		f.Add(stream, []byte{3, 1, 9})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		got := fuzzDecoder(t, decodeReplies, stream, cuts)
		var encoded [][]byte
		for _, r := range got.frames {
			if len(r.Text) > wire.MaxAddr {
				t.Fatalf("a text of %d bytes", len(r.Text))
			}
			if r.Op != wire.OpEmpty { // checkConsumed skips empty frames
				encoded = append(encoded, r.Append(nil))
			}
		}
		checkConsumed(t, stream, encoded, got.err, got.partial)
	})
}

// fuzzDecoder decodes the stream whole, byte by byte and cut by the lengths in
// cuts, and returns what all three come to.
func fuzzDecoder[F comparable](t *testing.T, decodeChunks func(...[]byte) outcome[F], stream, cuts []byte) outcome[F] {
	whole := decodeChunks(stream)
	if got := decodeChunks(bytewise(stream)...); !got.equal(whole) {
		t.Fatalf("byte by byte: %+v, whole: %+v", got, whole)
	}
	if got := decodeChunks(chunksBy(cuts, stream)...); !got.equal(whole) {
		t.Fatalf("cut: %+v, whole: %+v", got, whole)
	}
	return whole
}

// chunksBy cuts the stream into chunks of the given lengths; the rest is one.
func chunksBy(lengths, stream []byte) [][]byte {
	var chunks [][]byte
	for _, n := range lengths {
		n := min(int(n), len(stream))
		chunks = append(chunks, stream[:n])
		stream = stream[n:]
	}
	return append(chunks, stream)
}

// checkConsumed checks that the stream is the encoded frames, with empty frames
// between, then at most one that has not ended or the one that is at fault.
func checkConsumed(t *testing.T, stream []byte, encoded [][]byte, err error, partial bool) {
	rest := bytes.TrimLeft(stream, "\n")
	for _, frame := range encoded {
		tail, ok := bytes.CutPrefix(rest, frame)
		if !ok {
			t.Fatalf("the frame encodes to %q, the stream has %q there", frame, rest)
		}
		rest = bytes.TrimLeft(tail, "\n")
	}
	if err == nil && partial != (len(rest) > 0) {
		t.Fatalf("partial is %v with %q left over", partial, rest)
	}
	if err == nil && len(rest) > wire.MaxFrame {
		t.Fatalf("%d bytes without an end are no fault", len(rest))
	}
}
