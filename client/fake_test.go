package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ticketing-io/ticketing/core/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a bubble of fake time with a network in memory, in which every byte that a
// server says is the test's.
type lab struct {
	*testing.T
	mu    sync.Mutex
	nodes map[string]*fakeNode
	ends  []func()

	stopIn  int // readings of a clock until the reader is stopped
	stopFor time.Duration
}

// fakeNode is a server's address. What dials it waits in conns until the test
// accepts it.
type fakeNode struct {
	l     *lab
	addr  string
	conns chan *peer

	// Guarded by the lab's lock.
	refuse bool // dials fail at once
	hang   bool // dials hang until they are given up
	dials  []time.Time
	auto   func(*peer) // if set, serves each session instead of the test
}

// peer is the server's end of one connection.
type peer struct {
	l       *lab
	c       *memConn
	dec     wire.RequestDecoder
	pending []wire.Request
	probes  bool // the test looks at probes; else they are skipped, unanswered
}

const here = "node-1:5225"

func inLab(t *testing.T, f func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, nodes: map[string]*fakeNode{}}
		defer l.close()
		f(l)
	})
}

// atEnd has f called at the test's end, inside the bubble even when it fails.
func (l *lab) atEnd(f func()) { l.ends = append(l.ends, f) }

func (l *lab) close() {
	for _, end := range slices.Backward(l.ends) {
		end()
	}
	synctest.Wait()
}

// sleep lets fake time pass.
func (l *lab) sleep(d time.Duration) { time.Sleep(d) }

// node makes a server that accepts dials.
func (l *lab) node(addr string) *fakeNode {
	n := &fakeNode{l: l, addr: addr, conns: make(chan *peer, 1<<16)}
	l.mu.Lock()
	l.nodes[addr] = n
	l.mu.Unlock()
	return n
}

func (l *lab) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	l.mu.Lock()
	n := l.nodes[addr]
	refuse, hang := n == nil, false
	var auto func(*peer)
	if n != nil {
		n.dials = append(n.dials, time.Now())
		refuse, hang, auto = n.refuse, n.hang, n.auto
	}
	l.mu.Unlock()
	switch {
	case refuse:
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: syscall.ECONNREFUSED}
	case hang:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client, server := memPipe()
	p := &peer{l: l, c: server}
	if auto != nil {
		go auto(p)
	} else {
		n.conns <- p
	}
	return client, nil
}

func (n *fakeNode) set(f func(n *fakeNode)) {
	n.l.mu.Lock()
	f(n)
	n.l.mu.Unlock()
}

// dialled returns how often it was dialled.
func (n *fakeNode) dialled() int {
	n.l.mu.Lock()
	defer n.l.mu.Unlock()
	return len(n.dials)
}

// accept returns the next connection, before its handshake.
func (n *fakeNode) accept() *peer {
	n.l.Helper()
	select {
	case p := <-n.conns:
		return p
	case <-time.After(time.Minute):
		n.l.Fatalf("nobody dialled %s", n.addr)
		return nil
	}
}

// session returns the next connection after its handshake with the given ready
// frame.
func (n *fakeNode) session(ready wire.Reply) *peer {
	n.l.Helper()
	p := n.accept()
	p.challenge("")
	p.send(ready)
	synctest.Wait()
	return p
}

var (
	single = wire.Reply{Op: wire.OpEmpty}
	leads  = wire.Reply{Op: wire.OpLeader, Text: here}
)

// broker makes a broker in the lab's network; it is closed at the test's end.
func (l *lab) broker(change ...func(*Config)) *Broker {
	l.Helper()
	cfg := Config{Addrs: []string{here}, Dial: l.dial}
	for _, f := range change {
		f(&cfg)
	}
	b, err := newBroker(cfg)
	if err != nil {
		l.Fatal(err)
	}
	began := time.Now()
	b.clock.timer = l.stoppable(b.clock.timer)
	b.clock.awake = l.stoppable(func() time.Duration { return time.Since(began) }) // the system's is not fake
	b.start()
	l.atEnd(func() { b.Close() })
	return b
}

// stopAfter has whoever reads a broker's clock for the n-th time from now on stop right
// after it, for d: a process that was stopped, or not scheduled.
func (l *lab) stopAfter(n int, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopIn, l.stopFor = n, d
}

// stoppable makes a clock after whose reading the reader can be stopped.
func (l *lab) stoppable(read func() time.Duration) func() time.Duration {
	return func() time.Duration {
		now := read()
		l.mu.Lock()
		l.stopIn--
		stop := l.stopIn == 0
		l.mu.Unlock()
		if stop {
			time.Sleep(l.stopFor)
		}
		return now
	}
}

// open makes a node and a broker with its two sessions: the first is kept for
// immediate attempts and releases, the second takes blocking acquires.
func (l *lab) open(change ...func(*Config)) (b *Broker, n *fakeNode, kept, block *peer) {
	l.Helper()
	n = l.node(here)
	b = l.broker(change...)
	kept = n.session(single)
	block = n.session(single)
	return b, n, kept, block
}

const fakeNonce = "abcdefgh"

// challenge does the server's part of the handshake up to the digest, which must be
// that of token.
func (p *peer) challenge(token string) {
	p.l.Helper()
	nonce := wire.Nonce([]byte(fakeNonce))
	p.raw(string(wire.AppendChallenge(nil, nonce)))
	want := wire.Digest([]byte(token), nonce)
	if got := p.line(); got != string(want[:]) {
		p.l.Fatalf("digest %q, want that of %q", got, token)
	}
}

// line reads up to the next newline, byte by byte.
func (p *peer) line() string {
	p.l.Helper()
	var line []byte
	var b [1]byte
	for {
		if _, err := p.c.Read(b[:]); err != nil {
			p.l.Fatalf("reading a line: %v after %q", err, line)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

func (p *peer) raw(bytes string) { p.c.Write([]byte(bytes)) }

// send writes replies in one piece.
func (p *peer) send(replies ...wire.Reply) {
	var buf []byte
	for _, r := range replies {
		buf = r.Append(buf)
	}
	p.c.Write(buf)
}

// next returns the next request, for which it waits. It is false at the
// connection's end.
func (p *peer) read() (wire.Request, bool) {
	p.l.Helper()
	p.c.SetReadDeadline(time.Now().Add(time.Hour)) // rather than forever
	defer p.c.SetReadDeadline(time.Time{})
	for p.drain(); len(p.pending) == 0; {
		var buf [4096]byte
		n, err := p.c.Read(buf[:])
		if err != nil {
			return wire.Request{}, false
		}
		p.take(buf[:n])
	}
	r := p.pending[0]
	p.pending = p.pending[1:]
	return r, true
}

func (p *peer) take(data []byte) {
	p.l.Helper()
	p.dec.Feed(data)
	for r, ok := p.dec.Next(); ok; r, ok = p.dec.Next() {
		if r.Op == wire.OpRelease && r.Token == 0 && !p.probes {
			continue
		}
		p.pending = append(p.pending, r)
	}
	if p.dec.Err() != nil {
		p.l.Errorf("the client sent a bad frame: %v", p.dec.Err())
	}
}

// drain takes what has arrived.
func (p *peer) drain() {
	h := p.c.in
	h.mu.Lock()
	data := h.buf
	h.buf = nil
	h.cond.Broadcast()
	h.mu.Unlock()
	p.take(data)
}

func (p *peer) next() wire.Request {
	p.l.Helper()
	r, ok := p.read()
	if !ok {
		p.l.Fatal("the client asked nothing, or closed the session")
	}
	return r
}

// acquire returns the next request, which must be an acquire of key.
func (p *peer) acquire(key string) wire.Request {
	p.l.Helper()
	r := p.next()
	if r.Op != wire.OpAcquire || r.Key != key {
		p.l.Fatalf("got %q of %q, want an acquire of %q", r.Op, r.Key, key)
	}
	return r
}

// release returns the next request, which must be a release of key and token.
func (p *peer) release(key string, token uint64) wire.Request {
	p.l.Helper()
	r := p.next()
	if r.Op != wire.OpRelease || r.Key != key || r.Token != token {
		p.l.Fatalf("got %+v, want a release of %q with token %d", r, key, token)
	}
	return r
}

// quiet checks that the client has sent nothing more.
func (p *peer) quiet() {
	p.l.Helper()
	synctest.Wait()
	p.drain()
	if len(p.pending) > 0 {
		p.l.Fatalf("the client sent %+v", p.pending)
	}
}

// isClosed says whether the client has closed the connection.
func (p *peer) isClosed() bool {
	synctest.Wait()
	h := p.c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wrote != nil
}

func (p *peer) wantClosed(want bool) {
	p.l.Helper()
	if got := p.isClosed(); got != want {
		p.l.Fatalf("the session is closed: %v, want %v", got, want)
	}
}

func grant(r wire.Request, token uint64) wire.Reply {
	return wire.Reply{Op: wire.OpAcquire, Token: token, Owner: r.Owner, Text: r.Key}
}

func answer(op wire.Op, r wire.Request) wire.Reply {
	return wire.Reply{Op: op, Token: r.Token, Owner: r.Owner, Text: r.Key}
}

// attempt is a call that goes on beside the test.
type attempt struct {
	l      *lab
	cancel context.CancelFunc
	done   chan struct{}
	ticket *Ticket
	err    error
	took   time.Duration
}

func (l *lab) begin(f func(ctx context.Context, a *attempt)) *attempt {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempt{l: l, cancel: cancel, done: make(chan struct{})}
	l.atEnd(cancel)
	began := time.Now()
	go func() {
		f(ctx, a)
		a.took = time.Since(began)
		close(a.done)
	}()
	synctest.Wait()
	return a
}

// acquire begins an acquire with a lease of 30 s and no work budget.
func (l *lab) acquire(b *Broker, key string, wait time.Duration) *attempt {
	return l.acquireFor(b, key, wait, DefaultLease, 0)
}

func (l *lab) acquireFor(b *Broker, key string, wait, lease, budget time.Duration) *attempt {
	return l.begin(func(ctx context.Context, a *attempt) {
		a.ticket, a.err = b.Acquire(ctx, key, wait, lease, budget)
	})
}

func (l *lab) release(b *Broker, key string, token uint64) *attempt {
	return l.begin(func(ctx context.Context, a *attempt) { a.err = b.Release(ctx, key, token) })
}

// wait returns once the call has.
func (a *attempt) wait() *attempt {
	a.l.Helper()
	<-a.done
	return a
}

// pending checks that the call goes on.
func (a *attempt) pending() {
	a.l.Helper()
	synctest.Wait()
	select {
	case <-a.done:
		a.l.Fatalf("the call returned after %s: %v, %v", a.took, a.ticket, a.err)
	default:
	}
}

// granted waits for the call and checks that it got a ticket.
func (a *attempt) granted() *Ticket {
	a.l.Helper()
	a.wait()
	if a.err != nil {
		a.l.Fatalf("no ticket: %v", a.err)
	}
	return a.ticket
}

// kinds are all the errors that callers can test for.
var kinds = map[string]error{
	"timeout": ErrTimeout, "busy": ErrBusy, "client capacity": ErrClientCapacity, "cancelled": ErrCancelled,
	"indeterminate": ErrIndeterminate, "unsupported duration": ErrUnsupportedDuration,
	"insufficient lease": ErrInsufficientLease, "invalid key": ErrInvalidKey, "authentication refused": ErrAuthRefused,
	"not connected": ErrNotConnected, "closed": ErrClosed, "not current": ErrNotCurrent, "protocol violation": ErrProtocol,
	"context canceled": context.Canceled, "context deadline": context.DeadlineExceeded, "bad configuration": ErrConfig,
}

// wantKinds checks that err is of exactly the named kinds.
func wantKinds(t testing.TB, err error, want ...string) {
	t.Helper()
	if got := kindsOf(err); fmt.Sprint(got) != fmt.Sprint(sorted(want)) {
		t.Fatalf("error %q is %v, want %v", fmt.Sprint(err), got, want)
	}
}

// fails waits for the call and checks that it failed with exactly the named kinds.
func (a *attempt) fails(want ...string) {
	a.l.Helper()
	a.wait()
	if a.ticket != nil {
		a.l.Fatalf("got a ticket, want %v", want)
	}
	wantKinds(a.l, a.err, want...)
}

// after checks how long the call took.
func (a *attempt) after(want time.Duration) {
	a.l.Helper()
	if a.took != want {
		a.l.Fatalf("the call took %s, want %s", a.took, want)
	}
}

func within(t testing.TB, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Fatalf("%s is %s, want %s to %s", what, got, low, high)
	}
}

// simple serves a session as a single server that grants every key at once.
func simple(ready wire.Reply) func(*peer) {
	var mu sync.Mutex
	token := uint64(0)
	return func(p *peer) {
		p.challengeAny()
		p.send(ready)
		for {
			r, ok := p.read()
			if !ok {
				return
			}
			if r.Op == wire.OpRelease {
				p.send(answer(wire.OpRelease, r))
				continue
			}
			mu.Lock()
			token++
			p.send(grant(r, token))
			mu.Unlock()
		}
	}
}

// challengeAny takes any digest.
func (p *peer) challengeAny() {
	p.raw("SHA-256 " + fakeNonce + "\n")
	var buf [wire.DigestLen + 1]byte
	for got := 0; got < len(buf) && !bytes.ContainsRune(buf[:got], '\n'); {
		n, err := p.c.Read(buf[got:])
		if err != nil {
			return
		}
		got += n
	}
}

func kindsOf(err error) []string {
	var got []string
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			got = append(got, name)
		}
	}
	return sorted(got)
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// wantText checks that an error's text has all parts.
func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Fatalf("error %q does not say %q", fmt.Sprint(err), part)
		}
	}
}
