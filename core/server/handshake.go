package server

import (
	"crypto/tls"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// handshake authenticates the client (docs/PROTOCOL.md, section 1). It returns what
// came behind the digest; or false, with the reason noted.
func (c *conn) handshake() (rest []byte, ok bool) {
	// No deadline of the socket bounds this: reads and writes count together.
	timeout := time.AfterFunc(time.Until(c.opened.Add(wire.HandshakeTimeout)), c.abandonHandshake)
	defer timeout.Stop()
	nonce := wire.NewNonce()
	if err := c.challenge(nonce); err != nil {
		return nil, false
	}
	line, rest, err := c.readLine()
	if err != nil {
		c.noteHandshakeError(err, ClosedHandshake)
		return nil, false
	}
	if !timeout.Stop() {
		c.abandonHandshake() // it is about to say so itself
		return nil, false
	}
	set := c.server.tokens.Load()
	i := wire.MatchDigest(set.secrets, nonce, line)
	if i < 0 {
		c.refuse()
		return nil, false
	}
	if !c.server.authenticated(c) {
		c.note(ClosedDisplaced, nothing)
		return nil, false
	}
	c.client = set.names[i]
	return rest, true
}

func (c *conn) abandonHandshake() { c.abort(ClosedHandshakeTimeout) }

// challenge sends the server's first line, over TLS where that is spoken. Its error
// has been noted.
func (c *conn) challenge(nonce wire.Nonce) error {
	if c.server.tls == nil {
		c.direct = newDirectWrite(c.nc)
	} else if err := c.agreeTLS(); err != nil {
		c.noteHandshakeError(err, ClosedTLS)
		return err
	}
	if _, err := c.stream.Write(wire.AppendChallenge(nil, nonce)); err != nil {
		c.noteHandshakeError(err, ClosedHandshake)
		return err
	}
	return nil
}

// agreeTLS sets TLS up on the socket.
func (c *conn) agreeTLS() error {
	t := tls.Server(c.stream, c.server.tls)
	c.stream = t
	return t.Handshake()
}

// readLine reads the client's one line.
func (c *conn) readLine() (line, rest []byte, err error) {
	buf := make([]byte, 0, 2*wire.MaxHandshakeLine)
	for {
		n, err := c.stream.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		line, rest, ok, lineErr := wire.CutLine(buf)
		if ok || lineErr != nil {
			return line, rest, lineErr
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// refuse lets a client with a wrong token wait before it is told, reading nothing:
// published clients dial again at once, and the connection counts meanwhile. It
// waits no longer than the connection lasts.
func (c *conn) refuse() {
	over := false
	timer := time.AfterFunc(wire.RefusalDelay, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		over = true
		c.room.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !over && !c.ending {
		c.room.Wait()
	}
	c.noteLocked(ClosedAuth, errorReply(wire.AuthFailed))
}

// noteHandshakeError notes why the handshake has ended, and what went wrong unless
// the server ended it.
func (c *conn) noteHandshakeError(err error, reason CloseReason) {
	if !c.isEnding() {
		c.failure = err
	}
	c.note(reason, nothing)
}
