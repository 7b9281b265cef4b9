package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// What bounds a client, who may be anybody on this machine.
const (
	headerTimeout  = 5 * time.Second  // to send a request's header
	requestTimeout = 10 * time.Second // to send the whole request
	answerTimeout  = 30 * time.Second // to be answered; a scrape takes 10 s at most
	idleTimeout    = 2 * time.Minute  // between requests: longer than scrapes are apart
	headerMax      = 16 << 10         // bytes of a request's header
	bodyMax        = 4 << 10          // bytes of a request's body; none is looked at
	connectionsMax = 64               // at once: they take of the file descriptors that clients need
)

// Config is what a Server is made of.
type Config struct {
	// Metrics answers GET /metrics.
	Metrics http.Handler
	// Ready tells why the node is not ready for clients, nil when it is. It must not wait.
	Ready  func() error
	Logger *slog.Logger // nil for nobody
}

// Server is a node's admin server.
type Server struct {
	config Config
	http   http.Server
}

// New returns a server that does nothing until Serve.
func New(c Config) *Server {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{config: c, http: http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerMax,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}}
}

// Serve answers requests until Shutdown, and returns nil then. It closes the listener. It is
// called once.
func (s *Server) Serve(ln net.Listener) error {
	s.http.Handler = s.handler()
	err := s.http.Serve(netutil.LimitListener(ln, connectionsMax))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("admin server on %s: %w", ln.Addr(), err)
}

// Shutdown stops listening and waits for the requests under way. When ctx ends first it
// cuts them off, and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop the admin server: %w", err), s.http.Close())
	}
	return nil
}
