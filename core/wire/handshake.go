package wire

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
)

// challengePrefix names the hash; the protocol has no other.
const challengePrefix = "SHA-256 "

// Errors of a handshake. The session ends with them, before anything was asked.
var (
	// ErrLineTooLong: more than MaxHandshakeLine bytes came without a newline.
	ErrLineTooLong = errors.New("handshake line too long")
	// ErrBadChallenge: the server's first line is no challenge, so it is no
	// Ticketing server, or it speaks TLS and the client does not.
	ErrBadChallenge = errors.New("not a challenge of a ticketing server")
)

// Nonce is the random part of a challenge, in base64url characters.
type Nonce [NonceLen]byte

// NewNonce draws a nonce from the system's cryptographic source.
func NewNonce() Nonce {
	var raw [NonceLen * 6 / 8]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	var n Nonce
	base64.RawURLEncoding.Encode(n[:], raw[:])
	return n
}

// AppendChallenge appends the server's first line to dst.
func AppendChallenge(dst []byte, n Nonce) []byte {
	dst = append(dst, challengePrefix...)
	dst = append(dst, n[:]...)
	return append(dst, '\n')
}

// ParseChallenge takes the nonce from the server's first line, given without its
// newline. Its error is ErrBadChallenge.
func ParseChallenge(line []byte) (Nonce, error) {
	var n Nonce
	text, ok := bytes.CutPrefix(line, []byte(challengePrefix))
	if !ok || len(text) != NonceLen {
		return n, ErrBadChallenge
	}
	for i, c := range text {
		if !isBase64URL(c) {
			return Nonce{}, fmt.Errorf("%w: the nonce is not base64url", ErrBadChallenge)
		}
		n[i] = c
	}
	return n, nil
}

// isBase64URL says whether c is in the alphabet of base64url. (Decoding instead
// would not tell: encoding/base64 skips carriage returns.)
func isBase64URL(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// Digest returns the answer to a challenge: base64url(SHA-256(token ∥ nonce)),
// without its newline (docs/PROTOCOL.md, section 1).
func Digest(token []byte, n Nonce) [DigestLen]byte {
	h := sha256.New()
	h.Write(token)
	h.Write(n[:])
	var sum [sha256.Size]byte
	var d [DigestLen]byte
	base64.RawURLEncoding.Encode(d[:], h.Sum(sum[:0]))
	return d
}

// MatchDigest returns the index of the token whose digest is line, or -1; no
// tokens match nothing, so a server without any gives the empty one by name.
// Every token is compared, each in constant time, so that the time taken tells
// nothing about them.
func MatchDigest(tokens [][]byte, n Nonce, line []byte) int {
	match := -1
	for i, token := range tokens {
		d := Digest(token, n)
		match = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(d[:], line), i, match)
	}
	return match
}

// CutLine splits the first handshake line off data, without its newline. It
// returns false when the line has not ended yet. Its error is ErrLineTooLong, as
// soon as that is certain.
func CutLine(data []byte) (line, rest []byte, ok bool, err error) {
	end := bytes.IndexByte(data[:min(len(data), MaxHandshakeLine+1)], '\n')
	if end >= 0 {
		return data[:end], data[end+1:], true, nil
	}
	if len(data) > MaxHandshakeLine {
		return nil, nil, false, ErrLineTooLong
	}
	return nil, data, false, nil
}
