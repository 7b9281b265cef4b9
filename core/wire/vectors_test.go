package wire_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

// vectors is testdata/vectors.json; the file says itself what its fields mean.
type vectors struct {
	About      []string
	Requests   []frameVector
	Replies    []frameVector
	Streams    []streamVector
	Faults     []faultVector
	Handshakes []struct {
		Name, Token, Nonce, Challenge, Answer string
	}
	BadChallenges  []lineVector `json:"bad_challenges"`
	RefusedAnswers struct {
		Token, Nonce string
		Lines        []lineVector
	} `json:"refused_answers"`
}

type frameVector struct {
	Name  string
	Hex   hexBytes
	Frame frame
}

type streamVector struct {
	Name, Side      string
	Chunks          []hexBytes
	Frames          []frame
	EndsInsideFrame bool `json:"ends_inside_frame"`
	Reason          wire.Reason
}

type faultVector struct {
	Name, Side string
	Reason     wire.Reason
	Hex        hexBytes
	KnownAt    int `json:"known_at"`
	Frames     []frame
}

type lineVector struct{ Name, Line string }

// frame is a request or a reply as JSON spells it.
type frame struct {
	Op          string
	Wait, Lease uint8
	Owner       uint64 `json:",string"`
	Token       uint64 `json:",string"`
	Key, Text   string
}

func (f frame) request() wire.Request {
	return wire.Request{Op: f.op(), Wait: f.Wait, Lease: f.Lease, Owner: f.Owner, Token: f.Token, Key: f.Key}
}

func (f frame) reply() wire.Reply {
	return wire.Reply{Op: f.op(), Token: f.Token, Owner: f.Owner, Text: f.Key + f.Text}
}

func (f frame) op() wire.Op {
	if f.Op == "" {
		return wire.OpEmpty
	}
	return wire.Op(f.Op[0])
}

func requestsOf(frames []frame) []wire.Request {
	var all []wire.Request
	for _, f := range frames {
		all = append(all, f.request())
	}
	return all
}

func repliesOf(frames []frame) []wire.Reply {
	var all []wire.Reply
	for _, f := range frames {
		all = append(all, f.reply())
	}
	return all
}

// hexBytes is a string of hexadecimal digits and spaces.
type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(text), " ", ""))
	*h = raw
	return err
}

// loadVectors reads the file strictly, so that a misspelt field is no vector
// that silently tests nothing.
func loadVectors(tb testing.TB) vectors {
	tb.Helper()
	file, err := os.Open("testdata/vectors.json")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var v vectors
	dec := json.NewDecoder(file)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		tb.Fatalf("testdata/vectors.json: %v", err)
	}
	return v
}

func chunksOf(s streamVector) [][]byte {
	var chunks [][]byte
	for _, c := range s.Chunks {
		chunks = append(chunks, c)
	}
	return chunks
}

// A client in another language that agrees with the file agrees with this
// package: in both directions.
func TestVectorsOfFrames(t *testing.T) {
	v := loadVectors(t)
	for _, r := range v.Requests {
		t.Run("request: "+r.Name, func(t *testing.T) {
			want := r.Frame.request()
			if got := want.Append(nil); string(got) != string(r.Hex) {
				t.Errorf("encoded:\n got %x\nwant %x", got, r.Hex)
			}
			checkOutcome(t, decodeRequests(r.Hex), outcome[wire.Request]{frames: []wire.Request{want}})
		})
	}
	for _, r := range v.Replies {
		t.Run("reply: "+r.Name, func(t *testing.T) {
			want := r.Frame.reply()
			if got := want.Append(nil); string(got) != string(r.Hex) {
				t.Errorf("encoded:\n got %x\nwant %x", got, r.Hex)
			}
			checkOutcome(t, decodeReplies(r.Hex), outcome[wire.Reply]{frames: []wire.Reply{want}})
		})
	}
}

func TestVectorsOfStreams(t *testing.T) {
	for _, s := range loadVectors(t).Streams {
		t.Run(s.Side+": "+s.Name, func(t *testing.T) {
			if s.EndsInsideFrame != (s.Reason == wire.BadRequest) {
				t.Fatal("a stream that ends inside a frame is a bad_request, and no other is")
			}
			switch s.Side {
			case "request":
				checkOutcome(t, decodeRequests(chunksOf(s)...),
					outcome[wire.Request]{frames: requestsOf(s.Frames), partial: s.EndsInsideFrame})
			case "reply":
				checkOutcome(t, decodeReplies(chunksOf(s)...),
					outcome[wire.Reply]{frames: repliesOf(s.Frames), partial: s.EndsInsideFrame})
			default:
				t.Fatalf("side %q", s.Side)
			}
		})
	}
}

// Each fault has its exact reason, is known at one exact byte, and leaves the
// frames before it standing.
func TestVectorsOfFaults(t *testing.T) {
	for _, f := range loadVectors(t).Faults {
		t.Run(f.Side+": "+f.Name, func(t *testing.T) {
			switch f.Side {
			case "request":
				checkFault(t, decodeRequests, f, requestsOf(f.Frames))
			case "reply":
				checkFault(t, decodeReplies, f, repliesOf(f.Frames))
			default:
				t.Fatalf("side %q", f.Side)
			}
		})
	}
}

func checkFault[F comparable](t *testing.T, decodeChunks func(...[]byte) outcome[F], f faultVector, frames []F) {
	t.Helper()
	want := outcome[F]{frames: frames, err: f.Reason}
	checkOutcome(t, decodeChunks(f.Hex), want)
	checkOutcome(t, decodeChunks(bytewise(f.Hex[:f.KnownAt])...), want)
	if early := decodeChunks(bytewise(f.Hex[:f.KnownAt-1])...); early.err != nil {
		t.Errorf("%v was said one byte before it could be known", early.err)
	}
}

func checkOutcome[F comparable](t *testing.T, got, want outcome[F]) {
	t.Helper()
	if !got.equal(want) {
		t.Errorf("decoded:\n got %+v\nwant %+v", got, want)
	}
}

func TestVectorsOfHandshakes(t *testing.T) {
	v := loadVectors(t)
	for _, h := range v.Handshakes {
		t.Run(h.Name, func(t *testing.T) {
			nonce := wire.Nonce([]byte(h.Nonce))
			if got := wire.AppendChallenge(nil, nonce); string(got) != h.Challenge {
				t.Errorf("challenge %q, want %q", got, h.Challenge)
			}
			line, rest, ok, err := wire.CutLine([]byte(h.Challenge))
			if !ok || len(rest) != 0 || err != nil {
				t.Fatalf("challenge is no whole line: rest %q, %v", rest, err)
			}
			if got, err := wire.ParseChallenge(line); got != nonce || err != nil {
				t.Errorf("nonce %q, %v", got, err)
			}
			digest := wire.Digest([]byte(h.Token), nonce)
			if got := string(digest[:]) + "\n"; got != h.Answer {
				t.Errorf("answer %q, want %q", got, h.Answer)
			}
			answer := []byte(strings.TrimSuffix(h.Answer, "\n"))
			if wire.MatchDigest([][]byte{[]byte(h.Token)}, nonce, answer) != 0 {
				t.Error("the server refuses the answer")
			}
		})
	}
	for _, b := range v.BadChallenges {
		t.Run("bad challenge: "+b.Name, func(t *testing.T) {
			if _, err := wire.ParseChallenge([]byte(b.Line)); !errors.Is(err, wire.ErrBadChallenge) {
				t.Errorf("%q: got %v, want ErrBadChallenge", b.Line, err)
			}
		})
	}
	for _, l := range v.RefusedAnswers.Lines {
		t.Run("refused: "+l.Name, func(t *testing.T) {
			tokens, nonce := [][]byte{[]byte(v.RefusedAnswers.Token)}, wire.Nonce([]byte(v.RefusedAnswers.Nonce))
			if i := wire.MatchDigest(tokens, nonce, []byte(l.Line)); i != -1 {
				t.Errorf("%q was taken for the digest of token %d", l.Line, i)
			}
		})
	}
}

// The file covers the protocol: no op and no reason of a decoder is without a
// vector, and the worked bytes of the protocol's section 5 are in it.
func TestVectorsAreComplete(t *testing.T) {
	v := loadVectors(t)
	seen := map[string]bool{}
	for _, r := range v.Requests {
		seen["request "+r.Frame.Op] = true
	}
	for _, r := range v.Replies {
		seen["reply "+r.Frame.Op] = true
		seen["reply E "+r.Frame.Text] = r.Frame.Op == "E"
	}
	for _, s := range v.Streams {
		seen[s.Side+" fault "+string(s.Reason)] = true
	}
	for _, f := range v.Faults {
		seen[f.Side+" fault "+string(f.Reason)] = true
	}
	var want []string
	for _, op := range []wire.Op{wire.OpAcquire, wire.OpRelease} {
		want = append(want, fmt.Sprintf("request %c", op))
	}
	for _, op := range []wire.Op{wire.OpAcquire, wire.OpTimeout, wire.OpBusy, wire.OpRelease, wire.OpNotCurrent,
		wire.OpMoved, wire.OpLeader, wire.OpError} {
		want = append(want, fmt.Sprintf("reply %c", op))
	}
	want = append(want, "reply ")
	for _, r := range []wire.Reason{wire.BadOp, wire.BadRequest, wire.LineTooLong, wire.BadLease, wire.BadKey,
		wire.AuthFailed, wire.NotActive, wire.NoLeader} {
		want = append(want, "reply E "+string(r))
	}
	for _, r := range []wire.Reason{wire.BadOp, wire.BadRequest, wire.LineTooLong, wire.BadLease, wire.BadKey} {
		want = append(want, "request fault "+string(r))
	}
	for _, r := range []wire.Reason{wire.BadOp, wire.BadRequest, wire.LineTooLong, wire.BadKey, wire.BadToken, wire.BadText} {
		want = append(want, "reply fault "+string(r))
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no vector for: %s", w)
		}
	}
	if len(v.About) == 0 {
		t.Error("the file does not say what it is")
	}
	names := map[string]bool{}
	for _, name := range v.names() {
		if names[name] {
			t.Errorf("two vectors are named %q", name)
		}
		names[name] = true
	}
}

func (v vectors) names() []string {
	var all []string
	for _, r := range v.Requests {
		all = append(all, "request: "+r.Name)
	}
	for _, r := range v.Replies {
		all = append(all, "reply: "+r.Name)
	}
	for _, s := range v.Streams {
		all = append(all, s.Side+" stream: "+s.Name)
	}
	for _, f := range v.Faults {
		all = append(all, f.Side+" fault: "+f.Name)
	}
	return all
}

// streams returns every sequence of bytes in the file that one side may read,
// each also in a stream of its like: cuts there fall between whole frames too.
func (v vectors) streams(side string) [][]byte {
	singles := v.Requests
	if side == "reply" {
		singles = v.Replies
	}
	var all [][]byte
	for _, r := range singles {
		all = append(all, r.Hex)
	}
	for _, s := range v.Streams {
		if s.Side == side {
			all = append(all, slices.Concat(chunksOf(s)...))
		}
	}
	for _, f := range v.Faults {
		if f.Side == side {
			all = append(all, f.Hex)
		}
	}
	return all
}

func TestEveryCutGivesTheSameFrames(t *testing.T) {
	v := loadVectors(t)
	for _, stream := range v.streams("request") {
		checkEveryCut(t, decodeRequests, stream)
	}
	for _, stream := range v.streams("reply") {
		checkEveryCut(t, decodeReplies, stream)
	}
}
