package link

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
)

// network joins links in memory, without a socket: its conns are pipes.
type network struct {
	mu        sync.Mutex
	listeners map[string]*memListener
}

func newNetwork() *network { return &network{listeners: make(map[string]*memListener)} }

// listen returns the listener at addr, the same each time.
func (n *network) listen(addr string) *memListener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ln := n.listeners[addr]; ln != nil {
		return ln
	}
	ln := &memListener{addr: memAddr(addr), conns: make(chan net.Conn), fails: make(chan error), done: make(chan struct{})}
	n.listeners[addr] = ln
	return ln
}

func (n *network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	ln := n.listeners[addr]
	n.mu.Unlock()
	if ln == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case ln.conns <- far:
		return near, nil
	case <-ln.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memListener struct {
	addr  memAddr
	conns chan net.Conn
	fails chan error // what Accept returns instead
	once  sync.Once
	done  chan struct{}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case err := <-l.fails:
		return nil, err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *memListener) Addr() net.Addr { return l.addr }

type memAddr string

func (a memAddr) Network() string { return "memory" }
func (a memAddr) String() string  { return string(a) }

// node starts a link without TLS on the network, at "<id>:1".
func (n *network) node(t *testing.T, id string, change ...func(*Config)) *Link {
	t.Helper()
	cfg := Config{NodeID: id, Insecure: true, Logger: testLogger(t), DialContext: n.DialContext}
	if id != "" {
		cfg.Listener = n.listen(id + ":1")
	}
	for _, f := range change {
		f(&cfg)
	}
	return start(t, cfg)
}

func start(t *testing.T, cfg Config) *Link {
	t.Helper()
	l, err := Listen(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// stranger opens a connection on which nothing was said.
func (n *network) stranger(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := n.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dial(t *testing.T, l *Link, kind Kind, addr, want string) *Conn {
	t.Helper()
	c, err := l.Dial(context.Background(), kind, addr, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// refusedWith checks that there is no stream, and why.
func refusedWith(t *testing.T, l *Link, kind Kind, addr, want string, why error) {
	t.Helper()
	c, err := l.Dial(context.Background(), kind, addr, want)
	if err == nil {
		c.Close()
		t.Fatalf("%s stream to %q at %s was opened, want %v", kind, want, addr, why)
	}
	if !errors.Is(err, why) {
		t.Fatalf("%s stream to %q at %s: %v, want %v", kind, want, addr, err, why)
	}
}

func accept(t *testing.T, ln net.Listener) *Conn {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*Conn)
}

// joined checks that what one side says arrives at the other.
func joined(t *testing.T, from, to net.Conn) {
	t.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := from.Write([]byte("ping"))
		wrote <- err
	}()
	var got [4]byte
	if _, err := io.ReadFull(to, got[:]); err != nil || string(got[:]) != "ping" {
		t.Fatalf("read %q, %v", got, err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
}

// ended checks that a stream was closed by the link or the other side.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Fatalf("read %d bytes, %v: the stream is open", n, err)
	}
}

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}

func tcpAddr(ip string) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711} }

// from is a listener whose conns come from an address.
type from struct {
	net.Listener
	addr net.Addr
}

func (l from) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return at{c, l.addr}, err
}

// at is a conn whose other side is at an address.
type at struct {
	net.Conn
	addr net.Addr
}

func (c at) RemoteAddr() net.Addr { return c.addr }

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialTo is inner, with conns that seem to lead to an address.
func dialTo(inner dialFunc, to net.Addr) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := inner(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return at{c, to}, nil
	}
}
