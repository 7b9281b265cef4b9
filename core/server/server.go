package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// Service is what a connection needs of the service that decides its requests.
type Service interface {
	// Open may tell the sink of a leader before it returns. A session that was told of
	// none asks nothing yet.
	Open(sink service.Sink, holder string) *service.Session
	// Acquire and Release may wait, until Leave is called for the session.
	Acquire(*service.Session, service.Acquire)
	Release(c *service.Session, key string, token uint64)
	Abandon(key string, token uint64)
	// Leave may be called more than once for a session, and from any goroutine.
	Leave(*service.Session)
}

// Token is a client token that is valid. Its name is what logs show.
type Token struct {
	Name   string
	Secret []byte
}

// Config is what a Server is made of.
type Config struct {
	MaxConnections int         // connections at once, those in their handshake included
	Tokens         []Token     // none: exactly the empty token is valid
	TLS            *tls.Config // nil: plain TCP
	Logger         *slog.Logger
	Observer       Observer // may be nil
}

// Server accepts connections and serves each by the protocol.
type Server struct {
	service  Service
	max      int
	tls      *tls.Config
	log      *slog.Logger
	observer Observer
	tokens   atomic.Pointer[tokenSet]

	mu        sync.Mutex
	listeners map[*net.Listener]struct{} // by address: not every listener can be a key
	conns     map[*conn]struct{}
	displaced map[*conn]struct{}              // not among conns any more, and not ended yet
	strangers list.List                       // of *conn, those in their handshake, oldest first
	moved     struct{ received, sent uint64 } // bytes, of connections that have ended
	stopping  bool
	stop      chan struct{} // closed when stopping
	wg        sync.WaitGroup
}

// tokenSet is the client tokens as the handshake compares them.
type tokenSet struct {
	names   []string
	secrets [][]byte
}

// New returns a server that asks service for decisions.
func New(service Service, cfg Config) *Server {
	s := &Server{
		service: service, max: cfg.MaxConnections, tls: cfg.TLS,
		log: cfg.Logger, observer: cfg.Observer,
		listeners: make(map[*net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
		displaced: make(map[*conn]struct{}),
		stop:      make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.observer == nil {
		s.observer = nobody{}
	}
	s.SetTokens(cfg.Tokens)
	return s
}

// SetTokens replaces the client tokens. Sessions that are open stay.
func (s *Server) SetTokens(tokens []Token) {
	set := &tokenSet{}
	for _, t := range tokens {
		set.names = append(set.names, t.Name)
		set.secrets = append(set.secrets, t.Secret)
	}
	if len(tokens) == 0 {
		set.names, set.secrets = []string{""}, [][]byte{nil}
	}
	s.tokens.Store(set)
}

// Bounds of the pause after a failed accept: without one a server that is out of
// file descriptors would spin, with a long one it would stay away after they are
// back.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// Serve accepts connections from ln until StopAccepting or Shutdown, and returns nil
// then. A failed accept does not end it; a listener that somebody else closes does,
// with an error.
func (s *Server) Serve(ln net.Listener) error {
	if !s.addListener(&ln) {
		ln.Close()
		return nil
	}
	defer s.removeListener(&ln)
	var failures int
	pause := acceptPauseMin
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			if failures > 0 {
				s.log.Info("accepting connections again", "failed_accepts", failures)
			}
			failures, pause = 0, acceptPauseMin
			s.admit(nc)
			continue
		case s.isStopping():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", ln.Addr(), err)
		}
		s.observer.AcceptFailed(err)
		if failures++; failures == 1 {
			s.log.Warn("can't accept a connection; new clients wait, those connected are served",
				"error", err, "retry_at_most_every", acceptPauseMax)
		}
		select {
		case <-time.After(pause):
		case <-s.stop:
		}
		pause = min(2*pause, acceptPauseMax)
	}
}

// admit takes a new connection on, or closes it at once when there are too many.
func (s *Server) admit(nc net.Conn) {
	c := newConn(s, nc)
	s.observer.ConnectionOpened()
	displaced, refused := s.enrol(c)
	if displaced != nil {
		displaced.abort(ClosedDisplaced)
	}
	if refused != "" {
		nc.Close()
		s.report(c, refused)
		return
	}
	go func() {
		defer s.wg.Done()
		c.run()
	}()
}

// enrol counts a connection in, or says why not. Those in their handshake may be a
// share of all, so that strangers who say nothing can't keep clients out: beyond it
// the oldest such is displaced. It no longer counts then, so that a newcomer finds
// its place even when the server is full.
func (s *Server) enrol(c *conn) (displaced *conn, refused CloseReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, ClosedDrain
	}
	if s.strangers.Len() >= max(1, s.max/wire.UnauthenticatedShare) {
		displaced = s.strangers.Front().Value.(*conn)
		s.forgetStranger(displaced)
		delete(s.conns, displaced)
		s.displaced[displaced] = struct{}{}
	}
	if len(s.conns) >= s.max {
		return displaced, ClosedLimit
	}
	s.conns[c] = struct{}{}
	c.stranger = s.strangers.PushBack(c)
	s.wg.Add(1)
	return displaced, ""
}

// authenticated moves a connection out of the strangers' share, where it can't be
// displaced any more. It returns false when it has been.
func (s *Server) authenticated(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stranger == nil {
		return false
	}
	s.forgetStranger(c)
	return true
}

func (s *Server) forgetStranger(c *conn) {
	if c.stranger != nil {
		s.strangers.Remove(c.stranger)
		c.stranger = nil
	}
}

// ended counts a connection out.
func (s *Server) ended(c *conn, reason CloseReason) {
	s.mu.Lock()
	s.forgetStranger(c)
	delete(s.conns, c)
	delete(s.displaced, c)
	s.settle(c)
	s.mu.Unlock()
	s.report(c, reason)
}

func (s *Server) addListener(ln *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listeners[ln] = struct{}{}
	return true
}

func (s *Server) removeListener(ln *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// StopAccepting closes the listeners. Connections stay.
func (s *Server) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.stopping = true
		close(s.stop)
	}
	for ln := range s.listeners {
		(*ln).Close()
	}
}

// Shutdown stops accepting and ends every connection once the answers that are
// queued for it are sent. When ctx ends first it closes what is left, and returns
// the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.StopAccepting()
	s.each(func(c *conn) { c.endSoon(ClosedDrain, nothing) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.each(func(c *conn) { c.abort(ClosedDrain) })
	<-done
	return ctx.Err()
}

func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}
