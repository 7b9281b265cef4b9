package wire_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ticketing-io/ticketing/core/wire"
)

// docs/PROTOCOL.md, section 5, byte for byte as it is printed there.
func TestWorkedBytes(t *testing.T) {
	acquire := wire.Request{Op: wire.OpAcquire, Wait: 5, Lease: 30, Owner: 7, Key: "order-42"}
	grant := wire.Reply{Op: wire.OpAcquire, Token: 10, Owner: 7, Text: "order-42"}
	release := wire.Request{Op: wire.OpRelease, Token: 10, Key: "order-42"}
	released := wire.Reply{Op: wire.OpRelease, Token: 10, Text: "order-42"}

	for _, c := range []struct {
		what, bytes string
		encoded     []byte
	}{
		{"acquire", "41 05 1e 00 00 00 00 00 00 00 07 6f 72 64 65 72 2d 34 32 0a", acquire.Append(nil)},
		{"grant", "41 00 00 00 00 00 00 00 0a 00 00 00 00 00 00 00 07 6f 72 64 65 72 2d 34 32 0a", grant.Append(nil)},
		{"release", "52 00 00 00 00 00 00 00 0a 6f 72 64 65 72 2d 34 32 0a", release.Append(nil)},
		{"released", "52 00 00 00 00 00 00 00 0a 6f 72 64 65 72 2d 34 32 0a", released.Append(nil)},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(c.bytes, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if string(c.encoded) != string(want) {
			t.Errorf("%s: encoded %x, want %x", c.what, c.encoded, want)
		}
	}
	checkOutcome(t, decodeRequests(acquire.Append(nil), release.Append(nil)),
		outcome[wire.Request]{frames: []wire.Request{acquire, release}})
	checkOutcome(t, decodeReplies(grant.Append(nil), released.Append(nil)),
		outcome[wire.Reply]{frames: []wire.Reply{grant, released}})

	digest := wire.Digest([]byte("123"), wire.Nonce([]byte("abcdefgh")))
	if got := string(digest[:]); got != "-AL6gTi9OepEApBmCdn9w33NXPYkzNzxg7x-LuyqHUk" {
		t.Errorf("digest %s", got)
	}
}

// docs/PROTOCOL.md, section 2: the largest frames with their newline.
func TestLargestFrames(t *testing.T) {
	key := strings.Repeat("k", wire.MaxKey)
	for _, c := range []struct {
		what string
		got  []byte
		want int
	}{
		{"acquire", wire.Request{Op: wire.OpAcquire, Lease: wire.MaxLease, Key: key}.Append(nil), 140},
		{"release", wire.Request{Op: wire.OpRelease, Token: 1, Key: key}.Append(nil), 138},
		{"grant", wire.Reply{Op: wire.OpAcquire, Token: 1, Text: key}.Append(nil), 146},
		{"leader", wire.Reply{Op: wire.OpLeader, Text: strings.Repeat("a", wire.MaxAddr)}.Append(nil), wire.MaxFrame + 1},
	} {
		if len(c.got) != c.want {
			t.Errorf("%s: %d bytes, want %d", c.what, len(c.got), c.want)
		}
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	req := wire.Request{Op: wire.OpRelease, Token: 10, Key: "k"}
	if got := req.Append([]byte("before")); string(got) != "before"+string(req.Append(nil)) {
		t.Errorf("request: %q", got)
	}
	reply := wire.Reply{Op: wire.OpBusy, Owner: 7, Text: "k"}
	if got := reply.Append([]byte("before")); string(got) != "before"+string(reply.Append(nil)) {
		t.Errorf("reply: %q", got)
	}
}

// Every sequence of requests survives the wire, with empty frames anywhere
// between and however the bytes are cut.
func TestRequestsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := rapid.SliceOfN(anyRequest(), 0, 8).Draw(t, "requests")
		var stream []byte
		for _, r := range requests {
			stream = append(stream, strings.Repeat("\n", rapid.IntRange(0, 2).Draw(t, "empty frames"))...)
			stream = r.Append(stream)
		}
		got := decodeRequests(drawCuts(t, stream)...)
		if want := (outcome[wire.Request]{frames: requests}); !got.equal(want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// Every sequence of replies survives the wire, however the bytes are cut.
func TestRepliesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replies := rapid.SliceOfN(anyReply(), 0, 8).Draw(t, "replies")
		var stream []byte
		for _, r := range replies {
			stream = r.Append(stream)
		}
		got := decodeReplies(drawCuts(t, stream)...)
		if want := (outcome[wire.Reply]{frames: replies}); !got.equal(want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func drawCuts(t *rapid.T, stream []byte) [][]byte {
	var chunks [][]byte
	for len(stream) > 0 {
		n := rapid.IntRange(1, len(stream)).Draw(t, "chunk")
		chunks = append(chunks, stream[:n])
		stream = stream[n:]
	}
	return chunks
}

func anyRequest() *rapid.Generator[wire.Request] {
	return rapid.Custom(func(t *rapid.T) wire.Request {
		if rapid.Bool().Draw(t, "release") {
			return wire.Request{Op: wire.OpRelease, Token: anyNumber().Draw(t, "token"), Key: anyKey().Draw(t, "key")}
		}
		return wire.Request{
			Op:    wire.OpAcquire,
			Wait:  rapid.Uint8().Draw(t, "wait"),
			Lease: rapid.Uint8Range(wire.MinLease, wire.MaxLease).Draw(t, "lease"),
			Owner: anyNumber().Draw(t, "owner"),
			Key:   anyKey().Draw(t, "key"),
		}
	})
}

func anyReply() *rapid.Generator[wire.Reply] {
	return rapid.Custom(func(t *rapid.T) wire.Reply {
		r := wire.Reply{Op: rapid.SampledFrom([]wire.Op{wire.OpAcquire, wire.OpTimeout, wire.OpBusy, wire.OpRelease,
			wire.OpNotCurrent, wire.OpMoved, wire.OpLeader, wire.OpError, wire.OpEmpty}).Draw(t, "op")}
		granted := anyNumber().Filter(func(n uint64) bool { return n != 0 })
		switch r.Op {
		case wire.OpAcquire:
			r.Token, r.Owner = granted.Draw(t, "token"), anyNumber().Draw(t, "owner")
		case wire.OpRelease:
			r.Token = granted.Draw(t, "token")
		case wire.OpNotCurrent:
			r.Token = anyNumber().Draw(t, "token")
		case wire.OpTimeout, wire.OpBusy:
			r.Owner = anyNumber().Draw(t, "owner")
		case wire.OpMoved, wire.OpLeader, wire.OpError:
			r.Text = rapid.StringMatching(`[ -~]{1,191}`).Draw(t, "text")
			return r
		case wire.OpEmpty:
			return r
		}
		r.Text = anyKey().Draw(t, "key")
		return r
	})
}

// anyNumber draws a u64, often one with the byte of a newline in it.
func anyNumber() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 10, 0x0a0a0a0a0a0a0a0a, 0x0a00000000000000, 1<<64 - 1}))
}

func anyKey() *rapid.Generator[string] {
	char := rapid.Rune().Filter(func(r rune) bool { return r != ' ' && r != '\n' && utf8.ValidRune(r) })
	return rapid.StringOfN(char, 1, wire.MaxKey, wire.MaxKey)
}
