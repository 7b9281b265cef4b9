package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Times of a connection.
const (
	// peerTimeout is how soon a peer that is gone without a word is noticed.
	peerTimeout = 10 * time.Second
	// readyTimeout bounds the wait for the ready frame, which a cluster's node holds
	// back until it knows its leader.
	readyTimeout = time.Minute
	// readBuffer is how much is read at once, in bytes: some thousand replies, so
	// that one system call takes what a burst left.
	readBuffer = 32 << 10
)

// dialTCP is what Config.Dial is by default.
func dialTCP(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{
		Control: setUserTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true,
			// Together peerTimeout: five unanswered probes after five quiet seconds.
			Idle: 5 * time.Second, Interval: time.Second, Count: 5,
		},
	}
	return d.DialContext(ctx, network, addr)
}

// What a connected server has not said yet, for the errors of those who wait.
const (
	awaitingTLS       = "it is connected, but the TLS handshake is not answered: perhaps it does not speak TLS"
	awaitingChallenge = "it is connected, but no challenge came: perhaps it speaks TLS and the client is set to plain TCP, or it is no lock server"
	awaitingInTLS     = "it is connected with TLS, but no challenge came: perhaps it is no lock server"
	awaitingReady     = "it is connected, but has not said that it serves: a cluster's node does when it knows its leader"
)

// open dials a session and answers the challenge (docs/PROTOCOL.md, section 1).
func (b *Broker) open(sl *slot) (*session, error) {
	ctx, cancel := context.WithTimeout(b.ctx, wire.HandshakeTimeout)
	defer cancel()
	raw, err := b.cfg.Dial(ctx, "tcp", sl.node.addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	raw.SetDeadline(deadline)
	s := newSession(b, sl, raw)
	if err := s.register(); err != nil {
		raw.Close()
		return nil, err
	}
	// From here on the broker's close and the session's end close raw.
	if err := s.handshake(); err != nil {
		b.mu.Lock()
		b.end(s, err, b.clock.mono())
		b.unlock()
		return s, s.ending
	}
	raw.SetDeadline(time.Now().Add(readyTimeout))
	return s, nil
}

// handshake negotiates TLS, if any, and proves that the client knows the token.
// What the server sent behind its challenge is left in s.rest.
func (s *session) handshake() error {
	cfg := &s.b.cfg
	if cfg.TLS.Mode != TLSOff {
		tlsConfig, err := cfg.TLS.config(s.node.addr)
		if err != nil {
			return err
		}
		if err := s.negotiate(tlsConfig); err != nil {
			return err
		}
	}
	nonce, err := s.readChallenge()
	if err != nil {
		return err
	}
	token, err := cfg.token()
	if err != nil {
		return err
	}
	digest := wire.Digest(token, nonce)
	if _, err := s.conn.Write(append(digest[:], '\n')); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	s.await(awaitingReady)
	return nil
}

// await notes what the server must say next.
func (s *session) await(what string) {
	s.b.mu.Lock()
	s.awaited = what
	s.b.unlock()
}

func (s *session) negotiate(cfg *tls.Config) error {
	s.await(awaitingTLS)
	conn := tls.Client(s.raw, cfg)
	err := conn.Handshake()
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return fmt.Errorf("TLS: the server answers without TLS, but the client is set to use TLS: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: %w", awaitingTLS, err)
	case err != nil:
		return fmt.Errorf("TLS: %w", err)
	}
	s.conn = conn
	return nil
}

func (s *session) readChallenge() (wire.Nonce, error) {
	awaited := awaitingChallenge
	if s.b.cfg.TLS.Mode != TLSOff {
		awaited = awaitingInTLS
	}
	s.await(awaited)
	n := 0
	for {
		read, err := s.conn.Read(s.buf[n:])
		n += read
		line, rest, ok, lineErr := wire.CutLine(s.buf[:n])
		switch {
		case lineErr != nil:
			return wire.Nonce{}, fmt.Errorf("%w: %w", ErrProtocol, lineErr)
		case ok:
			s.rest = rest
			nonce, err := wire.ParseChallenge(line)
			if err != nil {
				return nonce, fmt.Errorf("%w: %w", ErrProtocol, err)
			}
			return nonce, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return wire.Nonce{}, fmt.Errorf("%s: %w", awaited, err)
		case errors.Is(err, io.EOF):
			return wire.Nonce{}, fmt.Errorf("it closed the connection before its challenge: perhaps it takes no more of them, or perhaps it speaks TLS and the client does not: %w", err)
		case err != nil:
			return wire.Nonce{}, fmt.Errorf("handshake: %w", err)
		}
	}
}

var errNotACluster = errors.New("it is a single server, but a cluster's nodes are configured: several single servers are not one lock")

// ready takes the first frame of a session (docs/PROTOCOL.md, section 1).
func (s *session) ready(r wire.Reply, now time.Duration) {
	b := s.b
	switch r.Op {
	case wire.OpEmpty:
		if len(b.cfg.Addrs) > 1 || !s.node.configured {
			b.end(s, errNotACluster, now)
			return
		}
		s.opened(now)
		b.serve(s, now)
	case wire.OpLeader:
		s.opened(now)
		s.state = sessionWarm
		b.leaderNamed(s, r.Text, now)
	case wire.OpMoved:
		b.hint(s, r.Text)
		b.end(s, fmt.Errorf("%w, %q is", errMoved, r.Text), now)
	case wire.OpError:
		s.errored(r.Text, now)
	default:
		b.end(s, fmt.Errorf("%w: %q is no ready frame", ErrProtocol, string(r.Op)), now)
	}
}

// opened notes that the handshake is over.
func (s *session) opened(now time.Duration) {
	s.readyAt, s.awaited = now, ""
	sl := s.slot
	sl.dialling, sl.refused, sl.err = false, false, nil
	if sl.extra {
		s.node.extraFails = 0
	}
	s.b.note(note{Event: Event{Kind: EventDial, Node: s.node.addr, Took: now - sl.since}, text: "session opened", level: slog.LevelDebug})
	s.lastUsed = now
	s.b.signal()
}
