package link

import (
	"container/list"
	"net"
	"time"
)

// Conn is a stream.
type Conn struct {
	net.Conn // with TLS, if any
	raw      net.Conn
	link     *Link
	incoming bool

	// Of link.mu: who it is with, once that is known, and its place among the
	// strangers until then.
	kind     Kind
	peer     Identity
	stranger *list.Element
}

// Peer returns who is at the other end.
func (c *Conn) Peer() Identity { return c.peer }

// Close ends the stream. With TLS it tells the other side so, for which it waits up
// to 5 s when that side has stopped reading.
func (c *Conn) Close() error {
	c.link.forget(c)
	return c.Conn.Close()
}

// abort ends the stream at once, whoever uses it.
func (c *Conn) abort() {
	c.link.forget(c)
	c.raw.Close()
}

// negotiated takes away the deadline until which both sides must have said hello.
func (c *Conn) negotiated() { c.raw.SetDeadline(time.Time{}) }

// say writes a hello.
func (c *Conn) say(h hello) error {
	_, err := c.Write(appendHello(make([]byte, 0, maxHello), h))
	return err
}
