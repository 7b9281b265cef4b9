package server

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// conn is one connection. Its reader goroutine runs it and ends it; what others
// touch is behind mu.
type conn struct {
	server   *Server
	nc       net.Conn     // the socket
	stream   net.Conn     // what the protocol runs on: the socket, or TLS over it
	direct   *directWrite // writes that don't wait; nil where there are none
	opened   time.Time
	stranger *list.Element // in Server.strangers; guarded by Server.mu
	client   string        // the name of its client token
	heard    bool          // something was read from it; its reader's own
	failure  error         // what went wrong in its handshake, for the log; its reader's own
	decoder  wire.RequestDecoder
	traffic  traffic

	mu       sync.Mutex
	session  *service.Session // nil until it is authenticated; set by the reader
	room     sync.Cond        // a write has begun or ended, or the connection is to end
	queue    []service.Answer // decided, and in no write yet
	sent     []func()         // to be called when the write under way has ended
	writing  bool             // somebody writes
	flusher  bool             // a goroutine is about to
	ready    bool             // its ready frame is queued or sent
	watching bool             // its reader reads, only to see the peer's close, until it is ready
	since    time.Time        // when the write under way began
	ending   bool             // its reader is to end it, for
	reason   CloseReason      // this reason; the first one stands
	last     wire.Reply       // the last frame that the client is told; no Op: none
	closed   bool             // no write begins any more: what is queued is undelivered
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, opened: time.Now()}
	c.room.L = &c.mu
	c.stream = patientConn{nc, c}
	return c
}

// run serves the connection from its accept to its end.
func (c *conn) run() {
	if rest, ok := c.handshake(); ok {
		c.serve(rest)
	}
	c.finish()
}

// serve reads requests until the connection is to end. What came behind the digest
// is read first, once the ready frame is sent.
func (c *conn) serve(rest []byte) {
	session := c.server.service.Open(c, holder(c.client, c.nc.RemoteAddr()))
	c.mu.Lock()
	c.session = session
	ready := c.ready
	c.mu.Unlock()
	if !ready {
		rest = c.awaitReady(rest)
	}
	c.flushAll()
	if c.isEnding() {
		return
	}
	c.consume(rest)
	buf := make([]byte, wire.ReadBuffer)
	for c.awaitRoom(); !c.isEnding(); c.awaitRoom() {
		n, err := c.read(buf)
		c.consume(buf[:n])
		if err != nil {
			c.noteReadError(err)
		}
	}
}

func (c *conn) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// consume decodes and asks every whole request in data, and sends what was decided
// at once in as few writes as it can.
func (c *conn) consume(data []byte) {
	c.decoder.Feed(data)
	for c.makeRoom() {
		req, ok := c.decoder.Next()
		if !ok {
			break
		}
		c.ask(&req)
	}
	if err := c.decoder.Err(); err != nil {
		var reason wire.Reason
		errors.As(err, &reason)
		c.note(CloseReason(reason), errorReply(reason))
	}
	c.flush()
}

func (c *conn) ask(req *wire.Request) {
	if req.Op == wire.OpRelease {
		c.server.service.Release(c.session, req.Key, req.Token)
		return
	}
	c.server.service.Acquire(c.session, service.Acquire{
		Key: req.Key, Owner: req.Owner,
		Wait:  time.Duration(req.Wait) * time.Second,
		Lease: time.Duration(req.Lease) * time.Second,
	})
}

// read reads what has come. A client may be silent for ever between frames, but
// not for 5 s inside one.
func (c *conn) read(buf []byte) (int, error) {
	if !c.decoder.Partial() {
		return c.stream.Read(buf)
	}
	c.setReadDeadline(time.Now().Add(wire.FrameTimeout))
	n, err := c.stream.Read(buf)
	c.setReadDeadline(time.Time{})
	return n, err
}

// setReadDeadline sets the reader's deadline, unless it is to stop reading.
func (c *conn) setReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.nc.SetReadDeadline(t)
	}
}

// noteReadError notes why reading has ended. A connection that has broken is closed
// at once, since no write could deliver anything any more.
func (c *conn) noteReadError(err error) {
	eof := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case c.decoder.Partial() && (eof || late):
		c.note(ClosedRequest, errorReply(wire.BadRequest))
	case eof:
		c.note(ClosedByClient, nothing)
	case late: // endSoon has noted why
	default:
		c.abort(ClosedReset)
	}
}

// nothing is the last frame of a connection that ends without a word.
var nothing wire.Reply

func errorReply(reason wire.Reason) wire.Reply {
	return wire.Reply{Op: wire.OpError, Text: string(reason)}
}

// note says why the reader is to end the connection, and with which last frame, if
// any. The first reason stands.
func (c *conn) note(reason CloseReason, last wire.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLocked(reason, last)
}

func (c *conn) noteLocked(reason CloseReason, last wire.Reply) {
	if !c.ending {
		c.ending, c.reason, c.last = true, reason, last
		c.room.Broadcast()
	}
}

// longPast as a deadline has a read under way return.
var longPast = time.Unix(1, 0)

// endSoon has the reader end the connection once what is queued is sent. It may be
// called from any goroutine and does not wait.
func (c *conn) endSoon(reason CloseReason, last wire.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return // its reader may linger already, with a deadline of its own
	}
	c.noteLocked(reason, last)
	c.nc.SetReadDeadline(longPast)
}

// abort closes the connection at once. It may be called from any goroutine, not
// with the service's lock held, and does not wait for the reader. What is in no
// write yet is undelivered.
func (c *conn) abort(reason CloseReason) {
	c.mu.Lock()
	c.closeLocked(reason)
	c.mu.Unlock()
	c.cut()
}

// closeLocked lets no write begin any more. cut must follow.
func (c *conn) closeLocked(reason CloseReason) {
	c.noteLocked(reason, nothing)
	c.closed = true
	c.room.Broadcast()
}

// cut has the reader return wherever it waits: on the socket, or in the service for
// room in the release lane.
func (c *conn) cut() {
	c.nc.Close()
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session != nil {
		c.server.service.Leave(session)
	}
}

// finish ends the connection: its waiters leave, what was decided is sent, then
// the reason if there is one. Grants that are in no write are given back.
func (c *conn) finish() {
	if c.session != nil {
		c.server.service.Leave(c.session) // nothing is delivered from here on
	}
	c.flushAll()
	c.sayGoodbye()

	c.mu.Lock()
	c.closed = true
	undelivered := c.queue
	c.queue = nil
	reason := c.reason
	c.mu.Unlock()
	c.nc.Close()
	c.awaitWriter()
	for _, a := range undelivered {
		if a.Outcome == service.Granted {
			c.server.service.Abandon(a.Key, a.Token)
		}
		if a.Sent != nil {
			a.Sent()
		}
	}
	c.server.ended(c, reason)
}

// sayGoodbye sends the M or E, if there is one, and half-closes. Input is dropped for a
// while before the socket is closed: what is unread then would turn the close into
// a reset, which could overtake the last answers.
func (c *conn) sayGoodbye() {
	c.mu.Lock()
	last, closed := c.last, c.closed
	c.mu.Unlock()
	stranger := c.session == nil && last == nothing // has not earned a second more
	if closed || stranger {
		return
	}
	if last != nothing {
		if _, err := c.stream.Write(last.Append(nil)); err != nil {
			return
		}
	}
	c.halfClose()
}

func (c *conn) halfClose() {
	if t, ok := c.stream.(*tls.Conn); ok {
		t.CloseWrite() // close_notify
	}
	socket, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || socket.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(wire.LingerTimeout))
	io.CopyN(io.Discard, c.nc, wire.LingerBytes)
}
