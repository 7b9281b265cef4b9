package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/testca"
)

// secured starts a link with TLS on loopback TCP, and returns it.
func secured(t *testing.T, cfg Config, ca *testca.CA, pair testca.Pair) *Link {
	t.Helper()
	cfg.TLS, cfg.Logger = files(t, ca, pair), testLogger(t)
	if cfg.NodeID != "" {
		cfg.Listen = "127.0.0.1:0"
	}
	return start(t, cfg)
}

func files(t *testing.T, ca *testca.CA, pair testca.Pair) Files {
	t.Helper()
	dir := t.TempDir()
	cert, key := pair.WriteFiles(t, dir)
	return Files{Cert: cert, Key: key, CA: ca.WriteFile(t, dir)}
}

// lenient gives a link a certificate that it would not load itself: an attacker's
// program has no scruples.
func lenient(t *testing.T, id string, ca *testca.CA, pair testca.Pair) *Link {
	t.Helper()
	good := testca.New(t)
	cfg := Config{NodeID: id}
	fit := good.Node(t, id)
	if id == "" {
		fit = good.Operator(t, "mallory")
	}
	l := secured(t, cfg, good, fit)
	self := Identity{ID: id, Operator: id == ""}
	l.secret.Store(&credentials{cert: pair.TLS(), ca: ca.Pool(), self: self})
	return l
}

func TestStreamsWithTLS(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	n1 := secured(t, Config{NodeID: "n1"}, ca, ca.Node(t, "n1"))
	n2 := secured(t, Config{NodeID: "n2"}, ca, ca.Node(t, "n2"))
	alice := secured(t, Config{}, ca, ca.Operator(t, "alice", clientOnly))
	onNode := secured(t, Config{}, ca, ca.Node(t, "n1")) // a command on a node's own machine
	raft, control := n2.Raft(), n2.Control()
	addr := n2.Addr().String()
	for _, test := range []struct {
		from *Link
		kind Kind
		want string
		at   net.Listener
		peer Identity
	}{
		{n1, Raft, "n2", raft, Identity{ID: "n1"}},
		{n1, Control, "n2", control, Identity{ID: "n1"}},
		{n1, Control, "", control, Identity{ID: "n1"}},
		{alice, Control, "n2", control, Identity{ID: "alice", Operator: true}},
		{alice, Control, "", control, Identity{ID: "alice", Operator: true}},
		{onNode, Control, "", control, Identity{ID: "n1"}},
	} {
		near := dial(t, test.from, test.kind, addr, test.want)
		far := accept(t, test.at)
		joined(t, near, far)
		joined(t, far, near)
		if near.Peer() != (Identity{ID: "n2"}) || far.Peer() != test.peer {
			t.Errorf("the peers are %v and %v, want %v", near.Peer(), far.Peer(), test.peer)
		}
		state := near.Conn.(*tls.Conn).ConnectionState()
		if state.Version != tls.VersionTLS13 || state.DidResume {
			t.Errorf("version %x, resumed %t", state.Version, state.DidResume)
		}
	}
	if _, err := alice.Dial(context.Background(), Raft, addr, "n2"); err == nil {
		t.Error("an operator has a raft stream")
	}
}

func clientOnly(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
func serverOnly(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
func expired(c *x509.Certificate)    { c.NotAfter = time.Now().Add(-time.Minute) }
func early(c *x509.Certificate)      { c.NotBefore = time.Now().Add(time.Minute) }
func nameless(c *x509.Certificate)   { c.URIs = nil }

func alsoNode(t *testing.T, id string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.URIs = append(c.URIs, testca.URI(t, "ticketing://node/"+id)) }
}

func byHost(id string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.URIs = []*url.URL{}
		c.Subject.CommonName = id
		c.DNSNames, c.IPAddresses = []string{id, "localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
}

// Every certificate that is not exactly that of node n1, in the hands of somebody who
// says to be n1 and dials.
func TestNoOtherCertificateMakesADialerANode(t *testing.T) {
	t.Parallel()
	ca, other := testca.New(t), testca.New(t)
	n2 := secured(t, Config{NodeID: "n2"}, ca, ca.Node(t, "n2"))
	n2.Raft()
	n2.Control()
	for name, pair := range map[string]testca.Pair{
		"of another CA":             other.Node(t, "n1"),
		"signed by itself":          selfSigned(t, other),
		"run out":                   ca.Node(t, "n1", expired),
		"not valid yet":             ca.Node(t, "n1", early),
		"of nobody":                 ca.Node(t, "n1", nameless),
		"of a host":                 ca.Node(t, "n1", byHost("n1")),
		"of another node":           ca.Node(t, "n3"),
		"of the dialed node":        ca.Node(t, "n2"),
		"of two nodes":              ca.Node(t, "n1", alsoNode(t, "n3")),
		"of an operator":            ca.Operator(t, "n1"),
		"of an operator and a node": ca.Operator(t, "n1", alsoNode(t, "n1")),
		"of a client":               ca.Client(t),
		"of a server":               ca.Server(t),
		"of a node, server only":    ca.Node(t, "n1", serverOnly),
	} {
		t.Run(name, func(t *testing.T) {
			l := lenient(t, "n1", ca, pair)
			refusedWith(t, l, Raft, n2.Addr().String(), "n2", ErrRefused)
			refusedWith(t, l, Control, n2.Addr().String(), "n2", ErrRefused)
		})
	}
}

// The same of one who says to be an operator.
func TestNoOtherCertificateMakesADialerAnOperator(t *testing.T) {
	t.Parallel()
	ca, other := testca.New(t), testca.New(t)
	n2 := secured(t, Config{NodeID: "n2"}, ca, ca.Node(t, "n2"))
	n2.Raft()
	n2.Control()
	for name, pair := range map[string]testca.Pair{
		"of another CA": other.Operator(t, "alice"),
		"run out":       ca.Operator(t, "alice", expired),
		"of nobody":     ca.Operator(t, "alice", nameless),
		"of a client":   ca.Client(t),
		"of a server":   ca.Server(t),
		"server only":   ca.Operator(t, "alice", serverOnly),
		"of a node":     ca.Node(t, "n1"),
	} {
		t.Run(name, func(t *testing.T) {
			l := lenient(t, "", ca, pair)
			refusedWith(t, l, Control, n2.Addr().String(), "n2", ErrRefused)
		})
	}
}

// Every certificate that is not exactly that of node n2, in the hands of somebody who
// listens at n2's address. The dialing side shows its own to none of them.
func TestNoOtherCertificateMakesAListenerTheNode(t *testing.T) {
	t.Parallel()
	ca, other := testca.New(t), testca.New(t)
	n1 := secured(t, Config{NodeID: "n1"}, ca, ca.Node(t, "n1"))
	for name, test := range map[string]struct {
		pair testca.Pair
		want error
		any  error // of a control stream to any node; nil: that is one
	}{
		"of another CA":             {other.Node(t, "n2"), ErrUntrusted, ErrUntrusted},
		"signed by itself":          {selfSigned(t, other), ErrUntrusted, ErrUntrusted},
		"run out":                   {ca.Node(t, "n2", expired), ErrUntrusted, ErrUntrusted},
		"not valid yet":             {ca.Node(t, "n2", early), ErrUntrusted, ErrUntrusted},
		"of nobody":                 {ca.Node(t, "n2", nameless), ErrUntrusted, ErrUntrusted},
		"of the address":            {ca.Node(t, "n2", byHost("n2")), ErrUntrusted, ErrUntrusted},
		"of two nodes":              {ca.Node(t, "n2", alsoNode(t, "n3")), ErrUntrusted, ErrUntrusted},
		"of an operator":            {ca.Operator(t, "n2"), ErrUntrusted, ErrUntrusted},
		"of an operator and a node": {ca.Operator(t, "n2", alsoNode(t, "n2")), ErrUntrusted, ErrUntrusted},
		"of a client":               {ca.Client(t), ErrUntrusted, ErrUntrusted},
		"of a server":               {ca.Server(t), ErrUntrusted, ErrUntrusted},
		"of a node, client only":    {ca.Node(t, "n2", clientOnly), ErrUntrusted, ErrUntrusted},
		// A node of the cluster, so any is content with it until it lies about its name.
		"of another node": {ca.Node(t, "n3"), ErrWrongNode, ErrUntrusted},
	} {
		t.Run(name, func(t *testing.T) {
			l := lenient(t, "n2", ca, test.pair)
			l.Raft()
			l.Control()
			refusedWith(t, n1, Raft, l.Addr().String(), "n2", test.want)
			refusedWith(t, n1, Control, l.Addr().String(), "n2", test.want)
			refusedWith(t, n1, Control, l.Addr().String(), "", test.any)
		})
	}
}

func selfSigned(t *testing.T, own *testca.CA) testca.Pair {
	return own.Node(t, "n2", func(c *x509.Certificate) { c.Subject = own.Cert.Subject })
}

func TestTheDialerKeepsItsCertificateFromStrangers(t *testing.T) {
	t.Parallel()
	ca, other := testca.New(t), testca.New(t)
	n1 := secured(t, Config{NodeID: "n1"}, ca, ca.Node(t, "n1"))
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{other.Node(t, "n2").TLS()}, ClientAuth: tls.RequestClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	shown := make(chan int, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.(*tls.Conn).Handshake()
		shown <- len(c.(*tls.Conn).ConnectionState().PeerCertificates)
	}()
	refusedWith(t, n1, Raft, ln.Addr().String(), "n2", ErrUntrusted)
	if n := <-shown; n != 0 {
		t.Errorf("%d certificates were shown", n)
	}
}

func TestADialerWithoutACertificateIsRefused(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	n2 := secured(t, Config{NodeID: "n2"}, ca, ca.Node(t, "n2"))
	n2.Raft()
	for name, cfg := range map[string]*tls.Config{
		"without": {RootCAs: ca.Pool(), InsecureSkipVerify: true},
		"TLS 1.2": {InsecureSkipVerify: true, Certificates: []tls.Certificate{ca.Node(t, "n1").TLS()}, MaxVersion: tls.VersionTLS12},
	} {
		c, err := tls.Dial("tcp", n2.Addr().String(), cfg)
		if err != nil {
			continue
		}
		c.SetDeadline(time.Now().Add(HandshakeTimeout))
		if h, err := readHello(c); err == nil {
			t.Errorf("%s: was greeted with %+v", name, h)
		}
		c.Close()
	}
}

func TestPlainAndTLSDoNotMeet(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	over := secured(t, Config{NodeID: "n1"}, ca, ca.Node(t, "n1"))
	plain := start(t, Config{NodeID: "n2", Listen: "127.0.0.1:0", Logger: testLogger(t)})
	plain.Raft()
	refusedWith(t, over, Raft, plain.Addr().String(), "n2", ErrUntrusted)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := plain.Dial(ctx, Raft, over.Addr().String(), "n1")
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a plain dialer to a node with TLS: %v", err)
	}
}

func TestStreamsOverRealSockets(t *testing.T) {
	t.Parallel()
	n1 := start(t, Config{NodeID: "n1", Listen: "127.0.0.1:0"})
	n2 := start(t, Config{NodeID: "n2", Listen: "[::1]:0"})
	raft1, raft2 := n1.Raft(), n2.Raft()
	joined(t, dial(t, n1, Raft, n2.Addr().String(), "n2"), accept(t, raft2))
	_, port, _ := net.SplitHostPort(n1.Addr().String())
	near, far := dial(t, n2, Raft, "localhost:"+port, "n1"), accept(t, raft1)
	joined(t, near, far)
	n1.Cut()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a cut stream ends with %v", err)
	}
}
