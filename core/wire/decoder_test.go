package wire_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/ticketing-io/ticketing/core/wire"
)

// The first byte of a frame decides at once whether it can be one.
func TestEveryFirstByte(t *testing.T) {
	for b := range 256 {
		first := []byte{byte(b)}
		checkFirstByte(t, "request", b, decodeRequests(first).err, "AR\n")
		checkFirstByte(t, "reply", b, decodeReplies(first).err, "ATBRNMLE\n")
	}
}

func checkFirstByte(t *testing.T, side string, b int, err error, ops string) {
	t.Helper()
	var want error
	if strings.IndexByte(ops, byte(b)) < 0 {
		want = wire.BadOp
	}
	if err != want {
		t.Errorf("%s that begins with %#02x: got %v, want %v", side, b, err, want)
	}
}

func TestEveryLease(t *testing.T) {
	for lease := range 256 {
		var want error
		if lease < 1 || lease > 250 {
			want = wire.BadLease
		}
		req := wire.Request{Op: wire.OpAcquire, Lease: uint8(lease), Key: "k"}
		if got := decodeRequests(req.Append(nil)).err; got != want {
			t.Errorf("lease %d: got %v, want %v", lease, got, want)
		}
	}
}

// Of the bytes of ASCII a key may have all but the space and the newline, which
// ends it; no other byte is UTF-8 by itself.
func TestEveryByteOfAKey(t *testing.T) {
	for b := range 256 {
		if b == '\n' {
			continue
		}
		var want error
		if b == ' ' || b >= 0x80 {
			want = wire.BadKey
		}
		key := "a" + string([]byte{byte(b)}) + "b"
		for _, req := range []wire.Request{
			{Op: wire.OpAcquire, Lease: 1, Key: key},
			{Op: wire.OpRelease, Key: key},
		} {
			if got := decodeRequests(req.Append(nil)).err; got != want {
				t.Errorf("%c of key %q: got %v, want %v", req.Op, key, got, want)
			}
		}
		for _, op := range []wire.Op{wire.OpAcquire, wire.OpTimeout, wire.OpBusy, wire.OpRelease, wire.OpNotCurrent} {
			if got := decodeReplies(wire.Reply{Op: op, Token: 1, Text: key}.Append(nil)).err; got != want {
				t.Errorf("reply %c of key %q: got %v, want %v", op, key, got, want)
			}
		}
		if got := wire.ValidKey(key); got != (want == nil) {
			t.Errorf("ValidKey(%q) = %v", key, got)
		}
	}
	if wire.ValidKey("a\nb") {
		t.Error("ValidKey takes a newline")
	}
}

// A frame of each length: a key up to 128 bytes, a key that is too long up to a
// frame of 192 bytes, a line that is too long from there on.
func TestEveryLengthOfAFrame(t *testing.T) {
	for n := range 2 * wire.MaxFrame {
		key := strings.Repeat("k", n)
		for _, req := range []wire.Request{
			{Op: wire.OpAcquire, Lease: 1, Key: key},
			{Op: wire.OpRelease, Key: key},
		} {
			stream := req.Append(nil)
			var want error
			switch {
			case len(stream)-1 > 192:
				want = wire.LineTooLong
			case n == 0 || n > 128:
				want = wire.BadKey
			}
			if got := decodeRequests(stream).err; got != want {
				t.Errorf("%c with a key of %d bytes: got %v, want %v", req.Op, n, got, want)
			}
			if got := wire.ValidKey(key); got != (n >= 1 && n <= 128) {
				t.Errorf("ValidKey of %d bytes = %v", n, got)
			}
		}
		var want error
		switch {
		case n == 0:
			want = wire.BadText
		case n > wire.MaxAddr:
			want = wire.LineTooLong
		}
		for _, op := range []wire.Op{wire.OpMoved, wire.OpLeader, wire.OpError} {
			if got := decodeReplies(wire.Reply{Op: op, Text: key}.Append(nil)).err; got != want {
				t.Errorf("%c with a text of %d bytes: got %v, want %v", op, n, got, want)
			}
		}
	}
}

// After a fault a decoder says no more than its first reason, whatever comes.
func TestNothingIsDecodedAfterAFault(t *testing.T) {
	good := wire.Request{Op: wire.OpAcquire, Lease: 1, Key: "k"}.Append(nil)
	v := loadVectors(t)
	for _, f := range v.Faults {
		if f.Side == "request" {
			checkOutcome(t, decodeRequests(f.Hex, []byte("\n"), good, good),
				outcome[wire.Request]{frames: requestsOf(f.Frames), err: f.Reason})
		} else {
			checkOutcome(t, decodeReplies(f.Hex, []byte("\n"), []byte("?")),
				outcome[wire.Reply]{frames: repliesOf(f.Frames), err: f.Reason})
		}
	}
}

// Partial is what tells a connection's end between two frames from one inside a
// frame: true from the first byte of a frame on, until its newline.
func TestPartialUntilTheNewline(t *testing.T) {
	var requests wire.RequestDecoder
	checkPartial(t, &requests, wire.Request{Op: wire.OpRelease, Token: 10, Key: "order-42"}.Append(nil))
	var replies wire.ReplyDecoder
	checkPartial(t, &replies, wire.Reply{Op: wire.OpAcquire, Token: 10, Owner: 10, Text: "order-42"}.Append(nil))
}

func checkPartial[F comparable](t *testing.T, d decoder[F], frame []byte) {
	t.Helper()
	if d.Partial() {
		t.Error("partial before the first byte")
	}
	for i := range frame {
		d.Feed(frame[i : i+1])
		_, whole := d.Next()
		last := i == len(frame)-1
		if whole != last || d.Partial() == last {
			t.Errorf("after %d of %d bytes: whole %v, partial %v", i+1, len(frame), whole, d.Partial())
		}
	}
	d.Feed([]byte("\n\n"))
	for _, ok := d.Next(); ok; _, ok = d.Next() {
	}
	if d.Partial() {
		t.Error("partial after empty frames")
	}
}

// A line of 10 MB costs its sender the session, and the decoder nothing.
func TestEndlessLineCostsNoMemory(t *testing.T) {
	chunk := bytes.Repeat([]byte("k"), wire.ReadBuffer)
	chunk[0] = byte(wire.OpAcquire)
	allocs := testing.AllocsPerRun(10, func() {
		var d wire.RequestDecoder
		for range 10 << 20 / wire.ReadBuffer {
			d.Feed(chunk)
			if _, ok := d.Next(); ok {
				t.Error("a request came out of an endless line")
			}
		}
		if d.Err() != wire.LineTooLong {
			t.Errorf("got %v, want line_too_long", d.Err())
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

// A decoder that waits for more bytes, or has met a fault, holds no reference to
// the buffer it was fed from: a lingering connection's buffer can be reused.
func TestDecoderLetsGoOfTheBuffer(t *testing.T) {
	v := loadVectors(t)
	for _, stream := range v.streams("request") {
		checkLetsGo(t, new(wire.RequestDecoder), stream)
	}
	for _, stream := range v.streams("reply") {
		checkLetsGo(t, new(wire.ReplyDecoder), stream)
	}
}

func checkLetsGo[F comparable](t *testing.T, d decoder[F], stream []byte) {
	t.Helper()
	buffer := new([2 * wire.ReadBuffer]byte)
	d.Feed(buffer[:copy(buffer[:], stream)])
	for _, ok := d.Next(); ok; _, ok = d.Next() {
	}
	held := weak.Make(buffer)
	buffer = nil
	runtime.GC()
	if held.Value() != nil {
		t.Errorf("after %q the decoder holds the buffer", stream)
	}
	runtime.KeepAlive(d)
}
