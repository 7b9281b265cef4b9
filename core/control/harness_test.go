package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/link"
)

// scripted is a Node that does what its test says, and writes down what it was asked.
type scripted struct {
	mu     sync.Mutex
	asked  []string
	status Status

	members  []Member
	err      error // of every method
	snapshot []byte
	restored []byte
	// hold, if set, keeps each method until it returns or its context ends.
	hold chan struct{}
	// save and restore, if set, take the place of what the methods do.
	save    func(ctx context.Context, w io.Writer) error
	restore func(ctx context.Context, r io.Reader) error
}

func (n *scripted) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status
}

// ask notes a call and waits while the test holds it.
func (n *scripted) ask(ctx context.Context, format string, args ...any) error {
	n.mu.Lock()
	n.asked = append(n.asked, fmt.Sprintf(format, args...))
	hold := n.hold
	n.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return Doubt("", "held: %w", context.Cause(ctx))
		}
	}
	return n.err
}

// calls returns what it was asked so far.
func (n *scripted) calls() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

func (n *scripted) Members(ctx context.Context) ([]Member, error) {
	return n.members, n.ask(ctx, "members")
}
func (n *scripted) Add(ctx context.Context, who Peer) error { return n.ask(ctx, "add %+v", who) }
func (n *scripted) Remove(ctx context.Context, id string) error {
	return n.ask(ctx, "remove %s", id)
}
func (n *scripted) Promote(ctx context.Context, id string) error {
	return n.ask(ctx, "promote %s", id)
}
func (n *scripted) Transfer(ctx context.Context, id string) error {
	return n.ask(ctx, "transfer %q", id)
}

func (n *scripted) SaveSnapshot(ctx context.Context, w io.Writer) error {
	if err := n.ask(ctx, "save"); err != nil {
		return err
	}
	if n.save != nil {
		return n.save(ctx, w)
	}
	_, err := w.Write(n.snapshot)
	return err
}

func (n *scripted) RestoreSnapshot(ctx context.Context, r io.Reader, waive bool) error {
	if err := n.ask(ctx, "restore, waive %v", waive); err != nil {
		return err
	}
	if n.restore != nil {
		return n.restore(ctx, r)
	}
	data, err := io.ReadAll(r)
	n.restored = data
	return err
}

// network is the nodes' links in memory.
type network struct {
	t     *testing.T
	mu    sync.Mutex
	nodes map[string]*memListener // by address
	dials []string
}

// memListener takes connections that are made in memory.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
func (l *memListener) Addr() net.Addr { return &net.TCPAddr{} }

// known is a connection from somebody known.
type known struct {
	net.Conn
	peer link.Identity
}

func (k known) Peer() link.Identity { return k.peer }

func newNetwork(t *testing.T) *network {
	return &network{t: t, nodes: map[string]*memListener{}}
}

// listen returns the listener of an address.
func (n *network) listen(addr string) *memListener {
	l := &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[addr] = l
	return l
}

var errNobody = errors.New("nobody listens")

// dialer returns how somebody dials.
func (n *network) dialer(who link.Identity) Dial {
	return func(ctx context.Context, addr, id string) (net.Conn, error) {
		n.mu.Lock()
		l := n.nodes[addr]
		n.dials = append(n.dials, addr+" "+id)
		n.mu.Unlock()
		if l == nil {
			return nil, errNobody
		}
		near, far := net.Pipe()
		select {
		case l.conns <- known{far, who}:
			return near, nil
		case <-l.closed:
			return nil, errNobody
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (n *network) dialed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials)
}

// member is a node of a test's cluster with its server.
type member struct {
	*scripted
	server *Server
	log    *bytes.Buffer
}

func peerOf(id string) Peer {
	return Peer{ID: id, Raft: id + ":5226", Client: id + ":5225", Admin: id + ":5280"}
}

// member starts a node at ID:5226 that holds another for the leader.
func (n *network) member(id, leader string) *member {
	role := Follower
	if id == leader {
		role = Leader
	}
	m := &member{scripted: &scripted{status: Status{Self: peerOf(id), Role: role, Ready: true}}, log: new(bytes.Buffer)}
	if leader != "" {
		m.status.Leader = peerOf(leader)
	}
	pool := NewPool(n.dialer(link.Identity{ID: id}))
	m.server = NewServer(m.scripted, pool, slog.New(slog.NewTextHandler(m.log, nil)))
	l := n.listen(id + ":5226")
	served := make(chan error, 1)
	go func() { served <- m.server.Serve(l) }()
	n.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = m.server.Close(ctx) // a test may have closed it, or cut it
		pool.Close()
		if err := <-served; err != nil {
			n.t.Error(err)
		}
	})
	return m
}

// operator returns a client of a node, for an operator.
func (n *network) operator(id string) *Client {
	c := NewClient(n.dialer(link.Identity{ID: "alice", Operator: true}), id+":5226", id)
	n.t.Cleanup(c.Close)
	return c
}

// inFakeTime runs a test in a bubble of its own, with its cleanups.
func inFakeTime(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newNetwork(t)) })
}

// is fails the test unless an error is an Error of this class.
func is(t *testing.T, err error, class Class) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Class != class {
		t.Fatalf("got %T %v, want class %s", err, err, class)
	}
	return e
}
