package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

func TestBench(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, args := range []string{
		"--count 500 --workers 8",
		"--count 500 --workers 8 --keys 2",
		"--count 500 --workers 4 --connections 2 --pipeline 3",
		"--count 3 --workers 8",
	} {
		t.Run(args, func(t *testing.T) {
			r := ticketing(t, s.env(), append([]string{"bench", "--json"}, strings.Fields(args)...)...)
			var got benchOutput
			if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitOK || r.stderr != "" {
				t.Fatalf("%v: %v", err, r)
			}
			want := int64(500)
			if strings.Contains(args, "--count 3 ") {
				want = 3
			}
			if got.Pairs != want || got.DoubleGrants != 0 || got.FallingTokens != 0 || len(got.Errors) != 0 {
				t.Errorf("%+v", got)
			}
			if a := got.Acquire; got.PairsPerSecond <= 0 || a["p50"] <= 0 || a["p50"] > a["p99"] || a["p99"] > a["p999"] || a["p999"] > a["max"] {
				t.Errorf("%+v", got)
			}
		})
	}
}

// benchOutput is bench's JSON as a script reads it.
type benchOutput struct {
	Pairs          int64
	PairsPerSecond int64              `json:"pairs_per_second"`
	Acquire        map[string]float64 `json:"acquire_us"`
	Errors         map[string]int64
	DoubleGrants   int64 `json:"double_grants"`
	FallingTokens  int64 `json:"falling_tokens"`
}

func TestBenchCountsErrorsByKind(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	takeToken(t, s.env(), "bench-0", "--lease", "250s")
	r := ticketing(t, s.env(), "bench", "--json", "--count", "6", "--workers", "2", "--wait", "0s")
	var got benchOutput
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitOK {
		t.Fatalf("%v: %v", err, r)
	}
	if got.Pairs != 3 || got.Errors["timeout"] != 3 {
		t.Errorf("%+v", got)
	}
	r = ticketing(t, s.env(), "bench", "--count", "2", "--workers", "1", "--wait", "0s")
	if r.code != exitError || !strings.Contains(r.stdout, "errors: timeout") || !strings.Contains(r.stderr, "not one pair") {
		t.Errorf("no pair: %v", r)
	}
}

// bench exists to find a server that breaks its promises.
func TestBenchFindsAServerThatLies(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]struct {
		token func(n uint64) uint64
		want  string
	}{
		"grants a held key":      {func(n uint64) uint64 { return n }, "held twice"},
		"grants a token again":   {func(n uint64) uint64 { return 7 }, "tokens not rising"},
		"grants smaller tokens":  {func(n uint64) uint64 { return 1<<40 - n }, "tokens not rising"},
		"grants tokens in pairs": {func(n uint64) uint64 { return n ^ 1 }, "tokens not rising"},
	} {
		t.Run(name, func(t *testing.T) {
			env := []string{"TICKETING_ADDR=" + lyingServer(t, lie.token)}
			r := ticketing(t, env, "bench", "--workers", "16", "--keys", "1", "--count", "20000")
			if r.code != exitError || !strings.Contains(r.stderr, "broke its promise") {
				t.Fatalf("%v", r)
			}
			for line := range strings.SplitSeq(r.stdout, "\n") {
				if strings.HasPrefix(line, lie.want) && strings.HasSuffix(line, "  0") {
					t.Errorf("%s", line)
				}
			}
		})
	}
}

// lyingServer grants everything to everybody at once, with tokens of its own making.
func lyingServer(t *testing.T, token func(n uint64) uint64) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sessions sync.WaitGroup
	t.Cleanup(func() { l.Close(); sessions.Wait() })
	var mu sync.Mutex
	n := uint64(0)
	next := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		n++
		return token(n)
	}
	sessions.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { lie(conn, next) })
		}
	})
	return l.Addr().String()
}

func lie(conn net.Conn, token func() uint64) {
	defer conn.Close()
	buf := make([]byte, wire.ReadBuffer)
	conn.Write(wire.AppendChallenge(nil, wire.NewNonce()))
	if n, err := conn.Read(buf); err != nil || n != wire.DigestLen+1 {
		return
	}
	fmt.Fprint(conn, "\n")
	var dec wire.RequestDecoder
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		var out []byte
		dec.Feed(buf[:n])
		for r, ok := dec.Next(); ok; r, ok = dec.Next() {
			reply := wire.Reply{Op: r.Op, Token: r.Token, Owner: r.Owner, Text: r.Key}
			switch {
			case r.Op == wire.OpAcquire:
				reply.Token = token()
			case r.Token == 0:
				reply.Op = wire.OpNotCurrent
			}
			out = reply.Append(out)
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}
