package server

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// site is a server on a real port of this machine.
type site struct {
	t      *testing.T
	server *Server
	addr   string
	seen   *tally
	tls    *tls.Config // the clients'; nil for plain TCP
}

// newSite starts one over the real service; accepted see every connection first.
func newSite(t *testing.T, cfg Config, accepted ...func(*net.TCPConn)) *site {
	t.Helper()
	svc := service.New(local.New(1), service.Config{Limits: service.DefaultLimits()})
	t.Cleanup(svc.Close)
	return newSiteOf(t, svc, cfg, accepted...)
}

// newSiteOf starts one over the given service.
func newSiteOf(t *testing.T, svc Service, cfg Config, accepted ...func(*net.TCPConn)) *site {
	t.Helper()
	ln, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, addr: ln.Addr().String(), seen: newTally()}
	cfg.Observer = s.seen
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = wire.DefaultConnections
	}
	s.server = New(svc, cfg)
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(tuned{ln, accepted}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		s.server.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v after Shutdown", err)
		}
		s.seen.checkAllClosed(t)
	})
	return s
}

// tuned is a listener that shows its connections to a test.
type tuned struct {
	net.Listener
	accepted []func(*net.TCPConn)
}

func (l tuned) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		for _, f := range l.accepted {
			f(c.(*net.TCPConn))
		}
	}
	return c, err
}

// dial connects, and negotiates TLS where the site has it.
func (s *site) dial() *client {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { nc.Close() })
	c := &client{t: s.t, nc: nc, stream: nc, patience: 20 * time.Second}
	if s.tls != nil {
		c.negotiate(s.tls)
	}
	return c
}

// connect connects and authenticates with the empty token.
func (s *site) connect() *client {
	s.t.Helper()
	c := s.dial()
	c.authenticate("")
	return c
}

// within waits until a condition holds.
func within(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", most, what)
		}
	}
}
