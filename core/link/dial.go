package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Dial opens a stream to the node wantID at addr, "host:port", an IPv6 address in
// brackets. A name is resolved at each dial. wantID may be empty for a control
// stream: any node of the cluster. Until both sides have said hello takes
// HandshakeTimeout at most; ctx may end it sooner. The error is one of this package's,
// or else the network's own or the context's; that nobody answered in time is
// os.ErrDeadlineExceeded or context.DeadlineExceeded.
func (l *Link) Dial(ctx context.Context, kind Kind, addr, wantID string) (*Conn, error) {
	c, err := l.dial(ctx, kind, addr, wantID)
	if err != nil {
		whom := "a node"
		if wantID != "" {
			whom = "node " + wantID
		}
		return nil, fmt.Errorf("%s stream to %s at %s: %w", kind, whom, addr, err)
	}
	return c, nil
}

func (l *Link) dial(ctx context.Context, kind Kind, addr, wantID string) (*Conn, error) {
	if kind == Raft && (l.self().Operator || wantID == "") {
		return nil, errors.New("a raft stream goes from a node to a certain node")
	}
	if wantID != "" && !validID(wantID) {
		return nil, fmt.Errorf("%q can't be a node's id", wantID)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, err
	}
	if err := l.begin(kind); err != nil {
		return nil, err
	}
	defer l.wg.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	bounded, release := context.WithTimeout(ctx, HandshakeTimeout)
	defer release()
	raw, err := l.cfg.DialContext(bounded, "tcp", addr)
	if err != nil {
		return nil, l.cause(ctx, kind, err)
	}
	c, err := l.leave(raw, kind, wantID)
	if err != nil {
		raw.Close()
		return nil, err
	}
	// The connection's own deadline ends a silence, so that the error can say so.
	unwatch := context.AfterFunc(ctx, c.abort)
	deadline, _ := bounded.Deadline()
	c.raw.SetDeadline(deadline)
	if err = l.introduce(bounded, c, wantID); err == nil {
		c.negotiated()
		if unwatch() {
			return c, nil
		}
	}
	unwatch()
	c.abort()
	return nil, l.cause(ctx, kind, err)
}

// begin counts a dial in, so that Close waits for it.
func (l *Link) begin(kind Kind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.barred(kind); err != nil {
		return err
	}
	l.wg.Add(1)
	return nil
}

// cause returns why a dial failed: by what this side did meanwhile, or else err.
func (l *Link) cause(ctx context.Context, kind Kind, err error) error {
	l.mu.Lock()
	barred := l.barred(kind)
	l.mu.Unlock()
	switch {
	case barred != nil:
		return barred
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// introduce does the dialing side's part of the hello.
func (l *Link) introduce(ctx context.Context, c *Conn, wantID string) error {
	proved, err := l.prove(ctx, c, wantID)
	if err != nil {
		return err
	}
	greeting, err := listen(c)
	if err != nil {
		return err
	}
	switch {
	case greeting.version < oldestVersion:
		return fmt.Errorf("%w: it speaks %d, this one %d to %d", ErrVersion, greeting.version, oldestVersion, version)
	case greeting.id == "":
		return fmt.Errorf("%w: it does not say which node it is", ErrUntrusted)
	case proved != nil && greeting.id != proved.ID:
		return fmt.Errorf("%w: it says that it is %q, its certificate is that of %s", ErrUntrusted, greeting.id, *proved)
	}
	peer := Identity{ID: greeting.id}
	if err := wanted(peer, wantID); err != nil {
		return err
	}
	h := hello{version: min(version, greeting.version), code: byte(c.kind), want: wantID}
	if self := l.self(); !self.Operator {
		h.id = self.ID
	}
	if err := c.say(h); err != nil {
		return err
	}
	if _, err := listen(c); err != nil {
		return err
	}
	l.mu.Lock()
	c.peer = peer
	l.mu.Unlock()
	return nil
}

// prove negotiates TLS and returns who the other side's certificate names, or without
// TLS nil. It never shows its own certificate to somebody who is not the wanted node.
func (l *Link) prove(ctx context.Context, c *Conn, wantID string) (proved *Identity, err error) {
	secret := l.secret.Load()
	if secret == nil {
		if to := c.raw.RemoteAddr(); !l.cfg.Insecure && !loopback(to) {
			return nil, fmt.Errorf("%w, %s: set the certificates of the cluster's link", ErrInsecure, to)
		}
		return nil, nil
	}
	conn := tls.Client(c.raw, secret.client(func(peer Identity) error {
		proved = &peer
		return wanted(peer, wantID)
	}))
	var plain tls.RecordHeaderError
	switch err := conn.HandshakeContext(ctx); {
	case errors.As(err, &plain):
		return nil, fmt.Errorf("%w: it answers without TLS: %w", ErrUntrusted, err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("it is connected, but does not answer the TLS handshake: %w", err)
	case err != nil:
		return nil, alerted(err)
	}
	c.Conn = conn
	return proved, nil
}

// wanted checks that a peer is the node that was dialed for.
func wanted(peer Identity, wantID string) error {
	switch {
	case peer.Operator:
		return fmt.Errorf("%w: its certificate is that of %s", ErrUntrusted, peer)
	case wantID != "" && peer.ID != wantID:
		return fmt.Errorf("%w: %s", ErrWrongNode, peer)
	}
	return nil
}

// listen reads a hello of the listening side, and returns what its answer means.
func listen(c *Conn) (hello, error) {
	h, err := readHello(c)
	switch {
	case errors.Is(err, errNoHello):
		return h, fmt.Errorf("%w: %w", ErrUntrusted, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return h, fmt.Errorf("it is connected, but says nothing: perhaps it speaks TLS and this side does not, or its machine hangs: %w", err)
	case errors.Is(err, io.EOF):
		return h, fmt.Errorf("it closed the stream before it said hello: perhaps it has too many, or is no node: %w", err)
	case err != nil:
		return h, alerted(err)
	}
	return h, answer(h.code).err()
}

// alerted marks the error by which the other side ends a TLS handshake: it does not
// trust this side's certificate.
func alerted(err error) error {
	if isAlert(err) {
		return fmt.Errorf("%w: it does not trust this side's certificate: %w", ErrRefused, err)
	}
	return err
}

func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
