package wire_test

import (
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

// allocationKeys are keys that a decoder might be tempted to copy twice.
var allocationKeys = map[string]string{
	"short":            "order-42",
	"longest":          strings.Repeat("k", wire.MaxKey),
	"beyond ASCII":     "bestellung-ä",
	"long, non-ASCII":  strings.Repeat("é", wire.MaxKey/2),
	"all of four-byte": strings.Repeat("🔑", wire.MaxKey/4),
}

// Decoding allocates the key and nothing else, whole or in pieces.
func TestDecodingAllocatesTheKeyOnly(t *testing.T) {
	for name, key := range allocationKeys {
		t.Run(name, func(t *testing.T) {
			for _, req := range []wire.Request{
				{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: 7, Key: key},
				{Op: wire.OpRelease, Token: 10, Key: key},
			} {
				checkDecodeAllocations(t, new(wire.RequestDecoder), req.Append(nil), 1)
			}
			for _, op := range []wire.Op{wire.OpAcquire, wire.OpTimeout, wire.OpBusy, wire.OpRelease, wire.OpNotCurrent} {
				reply := wire.Reply{Op: op, Token: 10, Owner: 7, Text: key}
				checkDecodeAllocations(t, new(wire.ReplyDecoder), reply.Append(nil), 1)
			}
		})
	}
	t.Run("empty frame", func(t *testing.T) {
		checkDecodeAllocations(t, new(wire.RequestDecoder), []byte("\n"), 0)
		checkDecodeAllocations(t, new(wire.ReplyDecoder), []byte("\n"), 0)
	})
}

func checkDecodeAllocations[F comparable](t *testing.T, d decoder[F], frame []byte, want float64) {
	t.Helper()
	for cut := range frame {
		got := testing.AllocsPerRun(10, func() {
			for _, chunk := range [2][]byte{frame[:cut], frame[cut:]} {
				d.Feed(chunk)
				for _, ok := d.Next(); ok; _, ok = d.Next() {
				}
			}
		})
		if got != want || d.Err() != nil {
			t.Errorf("%q cut at %d: %v allocations, want %v; fault %v", frame, cut, got, want, d.Err())
		}
	}
}

// Encoding into a buffer with room allocates nothing.
func TestEncodingAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, wire.MaxFrame+1)
	for name, key := range allocationKeys {
		acquire := wire.Request{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: 7, Key: key}
		release := wire.Request{Op: wire.OpRelease, Token: 10, Key: key}
		grant := wire.Reply{Op: wire.OpAcquire, Token: 10, Owner: 7, Text: key}
		got := testing.AllocsPerRun(100, func() {
			buf = acquire.Append(buf[:0])
			buf = release.Append(buf[:0])
			buf = grant.Append(buf[:0])
		})
		if got != 0 {
			t.Errorf("%s key: %v allocations, want none", name, got)
		}
	}
}

// benchmarkFrames is how many frames a benchmark's buffer holds: a full write.
const benchmarkFrames = wire.MaxWriteBatch

func BenchmarkDecodeRequests(b *testing.B) {
	var stream []byte
	for i := range uint64(benchmarkFrames / 2) {
		stream = wire.Request{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: i, Key: "order-42"}.Append(stream)
		stream = wire.Request{Op: wire.OpRelease, Token: i, Key: "order-42"}.Append(stream)
	}
	benchmarkDecode(b, new(wire.RequestDecoder), stream)
}

func BenchmarkDecodeReplies(b *testing.B) {
	var stream []byte
	for i := range uint64(benchmarkFrames / 2) {
		stream = wire.Reply{Op: wire.OpAcquire, Token: i + 1, Owner: i, Text: "order-42"}.Append(stream)
		stream = wire.Reply{Op: wire.OpRelease, Token: i + 1, Text: "order-42"}.Append(stream)
	}
	benchmarkDecode(b, new(wire.ReplyDecoder), stream)
}

// BenchmarkDecodeSplitRequest decodes a request whose bytes come in two pieces.
func BenchmarkDecodeSplitRequest(b *testing.B) {
	frame := wire.Request{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: 7, Key: "order-42"}.Append(nil)
	var d wire.RequestDecoder
	b.ReportAllocs()
	for b.Loop() {
		d.Feed(frame[:5])
		d.Next()
		d.Feed(frame[5:])
		if _, ok := d.Next(); !ok {
			b.Fatal(d.Err())
		}
	}
}

// benchmarkDecode decodes the stream over and over; its time is that of a frame.
func benchmarkDecode[F comparable](b *testing.B, d decoder[F], stream []byte) {
	b.ReportAllocs()
	for i := 0; i < b.N; i += benchmarkFrames {
		d.Feed(stream)
		for _, ok := d.Next(); ok; _, ok = d.Next() {
		}
		if d.Err() != nil {
			b.Fatal(d.Err())
		}
	}
}

func BenchmarkEncodeRequest(b *testing.B) {
	buf := make([]byte, 0, wire.MaxFrame+1)
	req := wire.Request{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: 7, Key: "order-42"}
	b.ReportAllocs()
	for b.Loop() {
		buf = req.Append(buf[:0])
	}
}

func BenchmarkEncodeReply(b *testing.B) {
	buf := make([]byte, 0, wire.MaxFrame+1)
	reply := wire.Reply{Op: wire.OpAcquire, Token: 10, Owner: 7, Text: "order-42"}
	b.ReportAllocs()
	for b.Loop() {
		buf = reply.Append(buf[:0])
	}
}
