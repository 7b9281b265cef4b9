package link

import (
	"errors"
	"fmt"
	"io"
)

// What a hello is made of, in this order: magic, version, code, the lengths of two
// ids, the ids. Its form is the same in every version, so that any two versions
// understand why they part.
const (
	magic         = "TKLK"
	helloHeader   = len(magic) + 4
	maxHello      = helloHeader + 2*MaxID
	version       = 1 // the newest of the link that this program speaks
	oldestVersion = 1 // and the oldest
)

// MaxID is the longest id of a node or name of an operator, in bytes. It is what the
// configuration allows.
const MaxID = 64

// answer is the code of a hello of the listening side.
type answer byte

const (
	answerOK answer = iota
	answerRefused
	answerRemoved
	answerWrongNode
	answerVersion
)

// err returns what an answer means to the side that dialed, nil for a yes.
func (a answer) err() error {
	switch a {
	case answerOK:
		return nil
	case answerRemoved:
		return ErrRemoved
	case answerWrongNode:
		return ErrWrongNode
	case answerVersion:
		return ErrVersion
	default: // of a later version: a no for sure
		return ErrRefused
	}
}

// hello is what each side says. The listening side speaks first (its greeting), and
// again when it has decided; the code is an answer then. Of the dialing side the code
// is the kind of stream.
type hello struct {
	version byte
	code    byte
	id      string // the speaker's; "" for an operator, and for a listener that refuses
	want    string // who is spoken to; "" for any
}

var errNoHello = errors.New("what came is no hello of a cluster's node")

func appendHello(dst []byte, h hello) []byte {
	dst = append(dst, magic...)
	dst = append(dst, h.version, h.code, byte(len(h.id)), byte(len(h.want)))
	dst = append(dst, h.id...)
	return append(dst, h.want...)
}

// readHello reads a hello and not a byte more: what follows belongs to the stream.
func readHello(r io.Reader) (hello, error) {
	var buf [maxHello]byte
	head := buf[:helloHeader]
	if _, err := io.ReadFull(r, head[:len(magic)]); err != nil {
		return hello{}, fmt.Errorf("read hello: %w", err)
	}
	// Checked at once: whoever speaks another protocol may say no more for now.
	if string(head[:len(magic)]) != magic {
		return hello{}, errNoHello
	}
	if _, err := io.ReadFull(r, head[len(magic):]); err != nil {
		return hello{}, fmt.Errorf("read hello: %w", err)
	}
	h := hello{version: head[4], code: head[5]}
	idLen, wantLen := int(head[6]), int(head[7])
	if idLen > MaxID || wantLen > MaxID {
		return hello{}, fmt.Errorf("%w: its ids are of %d and %d bytes, more than %d", errNoHello, idLen, wantLen, MaxID)
	}
	ids := buf[helloHeader : helloHeader+idLen+wantLen]
	if _, err := io.ReadFull(r, ids); err != nil {
		return hello{}, fmt.Errorf("read hello: %w", err)
	}
	h.id, h.want = string(ids[:idLen]), string(ids[idLen:])
	for _, id := range []string{h.id, h.want} {
		if id != "" && !validID(id) {
			return hello{}, fmt.Errorf("%w: %q is no id", errNoHello, id)
		}
	}
	return h, nil
}

// validID tells whether s can be a node's id or an operator's name: 1 to MaxID
// letters, digits, dots, underscores or hyphens, as the configuration demands.
func validID(s string) bool {
	if s == "" || len(s) > MaxID || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
