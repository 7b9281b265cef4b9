package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

func TestCutLine(t *testing.T) {
	longest := strings.Repeat("x", 256)
	for _, c := range []struct {
		name, data, line, rest string
		ok                     bool
		err                    error
	}{
		{name: "nothing yet"},
		{name: "an empty line", data: "\n", ok: true},
		{name: "no newline yet", data: "SHA-256 abc", rest: "SHA-256 abc"},
		{name: "a line", data: "SHA-256 abcdefgh\n", line: "SHA-256 abcdefgh", ok: true},
		{name: "requests right behind the digest", data: "digest\nA\x0a\n\n", line: "digest", rest: "A\x0a\n\n", ok: true},
		{name: "a carriage return belongs to the line", data: "digest\r\n", line: "digest\r", ok: true},
		{name: "the longest line", data: longest + "\n", line: longest, ok: true},
		{name: "the longest line, not ended", data: longest, rest: longest},
		{name: "one byte more", data: longest + "x", err: wire.ErrLineTooLong},
		{name: "one byte more, ended", data: longest + "x\n", err: wire.ErrLineTooLong},
		{name: "a newline far behind", data: strings.Repeat("x", 10<<20) + "\n", err: wire.ErrLineTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, rest, ok, err := wire.CutLine([]byte(c.data))
			if ok != c.ok || err != c.err || string(line) != c.line || string(rest) != c.rest {
				t.Errorf("got %q, %q, %v, %v; want %q, %q, %v, %v", line, rest, ok, err, c.line, c.rest, c.ok, c.err)
			}
		})
	}
}

// A nonce's character is one of base64url's 64 and no other byte, at every place:
// decoders of base64 may skip line ends, and this one must not.
func TestParseChallengeTakesBase64URLOnly(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for place := range wire.NonceLen {
		for b := range 256 {
			line := []byte("SHA-256 abcdefgh")
			line[len("SHA-256 ")+place] = byte(b)
			_, err := wire.ParseChallenge(line)
			if valid := strings.IndexByte(alphabet, byte(b)) >= 0; valid != (err == nil) {
				t.Errorf("%q: got %v", line, err)
			}
			if err != nil && !errors.Is(err, wire.ErrBadChallenge) {
				t.Errorf("%q: %v is not ErrBadChallenge", line, err)
			}
		}
	}
}

func TestNoncesAreNewAndParse(t *testing.T) {
	seen := map[wire.Nonce]bool{}
	for range 1000 {
		n := wire.NewNonce()
		if seen[n] {
			t.Fatalf("nonce %s was drawn twice", n)
		}
		seen[n] = true
		line := bytes.TrimSuffix(wire.AppendChallenge(nil, n), []byte("\n"))
		if got, err := wire.ParseChallenge(line); got != n || err != nil {
			t.Fatalf("challenge %q: nonce %s, %v", line, got, err)
		}
	}
}

// Several client tokens are valid at once, so that they can be rotated.
func TestMatchDigest(t *testing.T) {
	nonce := wire.Nonce([]byte("abcdefgh"))
	answer := func(token string) []byte {
		d := wire.Digest([]byte(token), nonce)
		return d[:]
	}
	tokens := func(all ...string) [][]byte {
		var list [][]byte
		for _, token := range all {
			list = append(list, []byte(token))
		}
		return list
	}
	for _, c := range []struct {
		name   string
		tokens [][]byte
		answer []byte
		want   int
	}{
		{"the only token", tokens("old"), answer("old"), 0},
		{"the first of three", tokens("old", "new", "other"), answer("old"), 0},
		{"the second of three", tokens("old", "new", "other"), answer("new"), 1},
		{"the last of three", tokens("old", "new", "other"), answer("other"), 2},
		{"none of them", tokens("old", "new", "other"), answer("stranger"), -1},
		{"the empty token where it is configured", tokens(""), answer(""), 0},
		{"the empty token where it is not", tokens("old", "new"), answer(""), -1},
		{"a token where only the empty one is valid", tokens(""), answer("old"), -1},
		{"no tokens at all refuse everything", nil, answer(""), -1},
		{"the digest of two tokens joined", tokens("old", "new"), answer("oldnew"), -1},
		{"no answer", tokens("old"), nil, -1},
		{"an answer with something behind it", tokens("old"), append(answer("old"), 'x'), -1},
		{"a digest for an earlier challenge", tokens("old"), bytes.Clone(stale("old")), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wire.MatchDigest(c.tokens, nonce, c.answer); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// stale is the right answer to another challenge.
func stale(token string) []byte {
	d := wire.Digest([]byte(token), wire.Nonce([]byte("hgfedcba")))
	return d[:]
}
