package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Config is what a broker is made from. Addrs is required; the zero value of
// everything else is the default.
type Config struct {
	// Addrs are the servers as host:port; without a port 5225 is meant. One
	// address is a single server, two or more are the nodes of one cluster,
	// spelled as the nodes are advertised (docs/PROTOCOL.md, section 2, L). An
	// address must not stand for several single servers (see the package
	// documentation).
	Addrs []string

	// Token is the shared client token. At most one of Token, TokenFile and
	// TokenFunc is set; none means the empty token. The file is read, and the
	// function called, at each dial, so that tokens can be rotated. A line break
	// at the file's end does not belong to the token.
	Token     string
	TokenFile string
	TokenFunc func() ([]byte, error)

	// TLS says whether and how connections are encrypted; its zero value is off.
	TLS TLS

	// MaxPending is how many acquires may be pending at once, 1 to 16384; 0 is
	// the default of 1024. Further ones wait for a place until their deadline.
	MaxPending int

	// MaxSessions is how many sessions may be open to one node, at least 2; 0 is
	// the default of 8.
	MaxSessions int

	// ReplyGrace is how long a session is kept beyond an acquire's deadline for
	// the answer that is on its way (docs/CLIENT.md, section 2). Nil is the default
	// of 250 ms; new(time.Duration(0)) closes the session at the deadline.
	ReplyGrace *time.Duration

	// Logger gets what happens to sessions; nil logs nothing. The client token is
	// never logged.
	Logger *slog.Logger

	// Events, if set, is called with everything that happens, by several goroutines
	// at once: with an acquire or release by its caller's, with the rest by one of
	// the broker's. It must be quick, and must not call the broker.
	Events func(Event)

	// TracerProvider records the spans of acquires and releases (see the package
	// documentation). Nil is OpenTelemetry's global one, which records nothing as
	// long as the application sets none; noop.NewTracerProvider() is none at all.
	TracerProvider trace.TracerProvider

	// Dial opens connections, for proxies and tests; nil is a net.Dialer. It must
	// return when ctx ends, or Close waits for it. TLS is put on top of what it
	// returns.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Defaults and limits of a Config.
const (
	// DefaultMaxPending is how many acquires may be pending (docs/CLIENT.md,
	// section 2).
	DefaultMaxPending = 1024
	// MaxMaxPending is the highest MaxPending: as many waiters as a server queues
	// in all by default.
	MaxMaxPending = 16384
	// DefaultMaxSessions is how many sessions are opened to a node at most.
	DefaultMaxSessions = 8
	// MaxMaxSessions bounds MaxSessions, since a server takes 1024 connections by
	// default, from all its clients.
	MaxMaxSessions = 64
	// DefaultReplyGrace covers a round trip and a pause of either side.
	DefaultReplyGrace = 250 * time.Millisecond
	// MaxReplyGrace bounds how long a call may outlive its wait.
	MaxReplyGrace = time.Minute
)

// withDefaults returns cfg with every default filled in and every address in full,
// or all that is wrong with it.
func (cfg Config) withDefaults() (Config, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	addrs := make([]string, 0, len(cfg.Addrs))
	for _, addr := range cfg.Addrs {
		full, err := parseAddress(addr)
		switch {
		case err != nil:
			fault("address %q: %w", addr, err)
		case slices.Contains(addrs, full):
			fault("address %q is given twice", addr)
		default:
			addrs = append(addrs, full)
		}
	}
	if len(cfg.Addrs) == 0 {
		fault("no address is given")
	}
	if len(cfg.Addrs) > maxNodes {
		fault("%d addresses are given, a cluster has at most %d", len(cfg.Addrs), maxNodes)
	}
	cfg.Addrs = addrs

	if cfg.MaxPending == 0 {
		cfg.MaxPending = DefaultMaxPending
	}
	if cfg.MaxPending < 1 || cfg.MaxPending > MaxMaxPending {
		fault("MaxPending is %d, not 1 to %d", cfg.MaxPending, MaxMaxPending)
	}
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = DefaultMaxSessions
	}
	if cfg.MaxSessions < baseSessions || cfg.MaxSessions > MaxMaxSessions {
		fault("MaxSessions is %d, not %d to %d", cfg.MaxSessions, baseSessions, MaxMaxSessions)
	}
	if cfg.ReplyGrace == nil {
		cfg.ReplyGrace = new(DefaultReplyGrace)
	}
	if *cfg.ReplyGrace < 0 || *cfg.ReplyGrace > MaxReplyGrace {
		fault("ReplyGrace is %s, not 0 to %s", *cfg.ReplyGrace, MaxReplyGrace)
	}
	if err := cfg.checkToken(); err != nil {
		fault("%w", err)
	}
	for _, err := range cfg.TLS.check() {
		fault("%w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	return cfg, errors.Join(faults...)
}

// checkToken reads a token's file once, so that a wrong path is told at once.
func (cfg *Config) checkToken() error {
	sources := 0
	for _, set := range []bool{cfg.Token != "", cfg.TokenFile != "", cfg.TokenFunc != nil} {
		if set {
			sources++
		}
	}
	if sources > 1 {
		return errors.New("more than one of Token, TokenFile and TokenFunc is set")
	}
	if cfg.TokenFile == "" {
		return nil
	}
	_, err := cfg.token()
	return err
}

// token returns the client token as it is now.
func (cfg *Config) token() ([]byte, error) {
	switch {
	case cfg.TokenFunc != nil:
		token, err := cfg.TokenFunc()
		if err != nil {
			return nil, fmt.Errorf("client token: %w", err)
		}
		return token, nil
	case cfg.TokenFile != "":
		token, err := os.ReadFile(cfg.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("client token: %w", err)
		}
		return bytes.TrimRight(token, "\r\n"), nil
	}
	return []byte(cfg.Token), nil
}
