// Package node puts one server together from its configuration, and starts and
// ends it in one order.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/core/server"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// Options is what a node is given besides its configuration.
type Options struct {
	// Logger is told what an operator wants to know; nil for nobody.
	Logger *slog.Logger
	// Level is the Logger's level, which Reload sets; nil when it is fixed.
	Level *slog.LevelVar
	// Service, Server and Replica are told what the node does, for metrics and traces; they
	// may be nil.
	Service service.Observer
	Server  server.Observer
	Replica replica.Observer
}

// Node is one running server.
type Node struct {
	log      *slog.Logger
	level    *slog.LevelVar
	config   atomic.Pointer[config.Config]
	tls      atomic.Pointer[tls.Config]
	server   *server.Server
	service  *service.Service
	cluster  *cluster // nil on a single server
	served   chan error
	closing  sync.Once
	closeErr error

	mu       sync.Mutex
	listener net.Listener // nil while a cluster's node can point to nobody
}

// Start starts a node. The configuration must have been validated. When Start returns,
// a single server takes connections; a cluster's node does as soon as it serves or can
// point to who does (docs/PROTOCOL.md, section 1). It fails, and leaves nothing behind,
// when it can't listen, or when its data is not to be used.
func Start(ctx context.Context, cfg config.Config, o Options) (*Node, error) {
	n := &Node{log: o.Logger, level: o.Level, served: make(chan error, 2)}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	listenerTLS, err := cfg.ListenerTLS()
	if err != nil {
		return nil, err
	}
	n.config.Store(&cfg)
	raiseFileLimit(cfg.MaxConnections, n.log)
	// Also where it is not served yet: an address that is taken is told at once.
	listener, err := server.Listen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	if err := n.startService(ctx, cfg, o); err != nil {
		listener.Close()
		return nil, err
	}
	n.server = server.New(n.service, server.Config{
		MaxConnections: cfg.MaxConnections,
		Tokens:         tokens(cfg),
		TLS:            n.reloadable(listenerTLS),
		Logger:         n.log,
		Observer:       o.Server,
	})
	if n.cluster != nil {
		listener.Close()
		n.cluster.start(n.service)
		go n.serveWhenReady(cfg.Listen)
		return n, nil
	}
	n.serve(listener)
	n.log.Info("this single server keeps its locks in memory: a restart forgets them, and tokens go on above the old ones only as long as the clock is not set back")
	return n, nil
}

// startService makes what decides: over a machine of its own, or over the cluster's.
func (n *Node) startService(ctx context.Context, cfg config.Config, o Options) error {
	limits := service.DefaultLimits()
	limits.WaitersPerKey, limits.Waiters = cfg.MaxWaiters, cfg.MaxTotalWaiters
	if !cfg.Clustered() {
		n.service = service.New(local.New(uint64(time.Now().UnixMicro())), service.Config{Limits: limits, Observer: o.Service})
		return nil
	}
	c, err := newCluster(ctx, cfg, n.log, n.fail, o.Replica)
	if err != nil {
		return err
	}
	limits.Keys = wire.MaxKeysCluster
	n.cluster = c
	n.service = service.New(c.replica, service.Config{Limits: limits, Observer: o.Service, Clustered: true})
	return nil
}

// serve takes connections.
func (n *Node) serve(listener net.Listener) {
	n.mu.Lock()
	n.listener = listener
	n.mu.Unlock()
	cfg := n.config.Load()
	n.log.Info("serving", "listen", listener.Addr().String(), "tls", n.tls.Load() != nil,
		"client_tokens", len(cfg.ClientTokens), "max_connections", cfg.MaxConnections)
	go func() { n.served <- n.server.Serve(listener) }()
}

// serveWhenReady opens the port of a cluster's node when it serves or can point to who
// does.
func (n *Node) serveWhenReady(listen string) {
	if !n.cluster.awaitReady() {
		return
	}
	listener, err := server.Listen(n.cluster.ctx, listen)
	if err != nil {
		n.fail(err)
		return
	}
	n.serve(listener)
}

// fail tells that the node can't go on.
func (n *Node) fail(err error) {
	select {
	case n.served <- err:
	default: // it has been told
	}
}

func tokens(cfg config.Config) []server.Token {
	list := make([]server.Token, 0, len(cfg.ClientTokens))
	for _, t := range cfg.ClientTokens {
		list = append(list, server.Token{Name: t.Name(), Secret: t.Secret()})
	}
	return list
}

// reloadable returns a configuration by which each new connection uses what Reload
// loaded last.
func (n *Node) reloadable(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	n.tls.Store(c)
	return &tls.Config{
		MinVersion:         c.MinVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return n.tls.Load(), nil },
	}
}

// Addr returns the address on which clients are served, nil while they are not.
func (n *Node) Addr() net.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listener == nil {
		return nil
	}
	return n.listener.Addr()
}

// ServiceStats returns what is decided at a glance.
func (n *Node) ServiceStats() service.Stats { return n.service.Stats() }

// ServerStats returns the connections at a glance.
func (n *Node) ServerStats() server.Stats { return n.server.Stats() }

// ReplicaStats returns raft at a glance; nothing on a single server.
func (n *Node) ReplicaStats() replica.Stats {
	if n.cluster == nil {
		return replica.Stats{}
	}
	return n.cluster.replica.Stats()
}

// Ready says whether the node serves, or can point to who does, and else why not.
func (n *Node) Ready() error {
	if n.cluster == nil {
		return nil
	}
	return n.cluster.ready()
}

// Reload takes over what can change while the node runs: client tokens, the
// listener's certificates, the log level. Connections stay. What only a restart
// takes over is logged and left as it was. On an error nothing has changed.
func (n *Node) Reload(cfg config.Config) error {
	c, err := cfg.ListenerTLS()
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if n.cluster != nil {
		if err := n.cluster.reload(cfg); err != nil {
			return fmt.Errorf("reload: %w", err)
		}
	}
	if names := config.NeedRestart(*n.config.Load(), cfg); len(names) > 0 {
		n.log.Warn("changes that need a restart are not taken over", "keys", strings.Join(names, ", "))
	}
	n.server.SetTokens(tokens(cfg))
	if c != nil && n.tls.Load() != nil {
		n.tls.Store(c)
	}
	if n.level != nil {
		n.level.Set(cfg.LogLevel)
	}
	n.log.Info("configuration reloaded", "client_tokens", len(cfg.ClientTokens), "log_level", cfg.LogLevel)
	return nil
}

// Served returns a channel that tells when the node no longer takes connections: nil
// after Close began, else why.
func (n *Node) Served() <-chan error { return n.served }

// Close ends the node in order, and returns the context's error when that ended first
// and connections had to be cut. A second call waits for the first and returns the
// same.
//
//  1. No connection is accepted any more, so that clients go elsewhere.
//  2. Every acquire that waits or comes is answered Busy: certainly not granted. What is
//     under way goes on.
//  3. A cluster's leader hands its leadership over, which lets the entry under way
//     commit first; clients are told who leads. What then has no answer is ended with
//     not_active.
//  4. Each connection ends when its answers are sent; a single server's releases go on
//     until then.
//  5. The node leaves the cluster's streams, and its log is closed.
//  6. The service's timer stops.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Do(func() { n.closeErr = n.close(ctx) })
	return n.closeErr
}

func (n *Node) close(ctx context.Context) error {
	start := time.Now()
	n.log.Info("stopping", "connections", n.server.Connections())
	n.server.StopAccepting()
	n.service.Drain()
	if n.cluster != nil {
		n.cluster.handOver(ctx)
		n.service.Retire()
	}
	err := n.server.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("connections were cut: %w", err)
	}
	held := n.service.Stats().Held
	if n.cluster == nil {
		n.service.Close()
		n.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond), "locks_forgotten", held)
		return err
	}
	err = errors.Join(err, n.cluster.close(ctx))
	n.service.Close()
	n.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond))
	return err
}
