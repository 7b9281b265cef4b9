package link

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what a stream is for.
type Kind byte

// The kinds of streams.
const (
	Raft    Kind = 1 // between nodes only
	Control Kind = 2 // from nodes and operators
)

// String writes a kind for logs and errors.
func (k Kind) String() string {
	switch k {
	case Raft:
		return "raft"
	case Control:
		return "control"
	}
	return fmt.Sprintf("unknown kind %d", byte(k))
}

// Bounds of a link.
const (
	// HandshakeTimeout bounds the time from the first byte, or from the dial's
	// beginning, until both sides have said hello.
	HandshakeTimeout = 5 * time.Second
	// MaxStreams bounds the streams from others, strangers included.
	MaxStreams = 64
	// MaxControl is how many of them may be control streams. So raft finds room for
	// three streams from each of the 15 members that a cluster can have, whatever
	// operators do.
	MaxControl = MaxStreams / 4
)

// Config is what a Link is made of.
type Config struct {
	// NodeID is this node's id. It is empty for an operator, who only dials control
	// streams; with the certificate of a node it is that node who dials.
	NodeID string
	// Listen is the address for streams from others, "host:port"; empty: none.
	Listen string
	// TLS is this side's certificate. The zero value is plain TCP.
	TLS Files
	// Insecure lets streams without TLS come from and go to other machines.
	Insecure bool
	// Refuse tells whether a node was removed from the cluster; it gets ErrRemoved
	// then. It is called for each stream from another node, from any goroutine, and
	// must not wait. nil: none was.
	Refuse func(id string) (removed bool)
	Logger *slog.Logger // nil: none

	// Listener takes the place of Listen, and DialContext that of a TCP dialer, where
	// there is no network: in tests. Without TLS such a network needs Insecure.
	Listener    net.Listener
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Link is one side's end of all its streams. Its methods may be called from any
// goroutine.
type Link struct {
	cfg      Config
	log      *refusals
	secret   atomic.Pointer[credentials] // nil: plain TCP
	incoming net.Listener                // nil: none

	ctx  context.Context // done when closed
	stop context.CancelFunc
	wg   sync.WaitGroup // the accept loop, handshakes and dials

	mu        sync.Mutex
	open      map[*Conn]struct{} // every stream, from here and from others
	others    int                // those from others
	controls  int                // and of them those known to be of kind Control
	strangers list.List          // of *Conn from others, before their hello, oldest first
	listeners map[Kind]*listener
	cut       bool
	closed    bool
}

// Listen reads the files of cfg.TLS and listens, until Close. ctx bounds no more
// than the call.
func Listen(ctx context.Context, cfg Config) (*Link, error) {
	if cfg.NodeID != "" && !validID(cfg.NodeID) {
		return nil, fmt.Errorf("link: %q can't be a node's id", cfg.NodeID)
	}
	if cfg.NodeID == "" && (cfg.Listen != "" || cfg.Listener != nil) {
		return nil, errors.New("link: only a node listens; it needs an id")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DialContext == nil {
		cfg.DialContext = dialTCP
	}
	if cfg.Refuse == nil {
		cfg.Refuse = func(string) bool { return false }
	}
	l := &Link{
		cfg: cfg, log: newRefusals(cfg.Logger), incoming: cfg.Listener,
		open: make(map[*Conn]struct{}), listeners: make(map[Kind]*listener),
	}
	if cfg.TLS != (Files{}) {
		c, err := load(cfg.TLS, cfg.NodeID)
		if err != nil {
			return nil, fmt.Errorf("link: %w", err)
		}
		if err := c.valid(); err != nil {
			cfg.Logger.Warn("the nodes' link has no valid certificate", "error", err)
		}
		l.secret.Store(c)
	}
	if l.incoming == nil && cfg.Listen != "" {
		ln, err := listenTCP(ctx, cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("link: listen on %s: %w", cfg.Listen, err)
		}
		l.incoming = ln
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	if l.incoming != nil {
		l.wg.Go(l.accept)
	}
	return l, nil
}

// Addr returns the address for streams from others, nil when there is none.
func (l *Link) Addr() net.Addr {
	if l.incoming == nil {
		return nil
	}
	return l.incoming.Addr()
}

// self returns who this side is.
func (l *Link) self() Identity {
	if c := l.secret.Load(); c != nil {
		return c.self
	}
	return Identity{ID: l.cfg.NodeID, Operator: l.cfg.NodeID == ""}
}

// Reload reads certificate, key and CA anew. New streams use them, those that are
// open stay. On an error nothing has changed. TLS can't be turned on or off.
func (l *Link) Reload(files Files) error {
	if plain := files == (Files{}); plain != (l.secret.Load() == nil) {
		return errors.New("link: reload: TLS between the nodes is turned on or off by a restart only")
	} else if plain {
		return nil
	}
	c, err := load(files, l.cfg.NodeID)
	if err != nil {
		return fmt.Errorf("link: reload: %w", err)
	}
	if err := c.valid(); err != nil {
		return fmt.Errorf("link: reload: %w", err)
	}
	l.secret.Store(c)
	return nil
}

// Cut closes every raft stream, from here and from others, and refuses new ones
// until Restore. It does not wait for anything.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.dropAll(func(c *Conn) bool { return c.kind == Raft })
	if ln := l.listeners[Raft]; ln != nil {
		l.dropQueued(ln)
	}
}

// Restore ends a Cut.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Drop closes every stream with a node, so that a removed one must say hello again,
// and hears of its removal.
func (l *Link) Drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropAll(func(c *Conn) bool { return c.peer == Identity{ID: id} })
}

// Close stops listening, closes every stream, ends the dials under way and waits for
// what the link runs. Its listeners end. It is idempotent.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	l.stop()
	for _, ln := range l.listeners {
		l.endListener(ln)
	}
	l.dropAll(func(*Conn) bool { return true })
	l.mu.Unlock()
	var err error
	if l.incoming != nil {
		if err = l.incoming.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
	}
	l.wg.Wait()
	return err
}
