package server

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// defaultWindow is how much a memConn takes unread, as a socket's buffers do.
const defaultWindow = 256 << 10

// memConn is one end of a TCP connection in memory, for fake time. It has what the
// server relies on: a window, deadlines, half-close, and the reset that a close
// with unread input causes, which swallows what the other side has not read yet.
type memConn struct {
	link *link
	peer *memConn

	// Guarded by link.mu.
	inbox    []byte // has come and was not read
	window   int    // how much may be in inbox
	finished bool   // the peer's FIN has come
	reset    bool   // the peer's reset has come
	shut     bool   // a FIN was sent
	closed   bool
	readBy   deadline
	writeBy  deadline
	writes   []int  // the length of what each call of Write was given
	taken    int    // bytes of offered that Write has returned as written
	offered  []byte // everything that a Write has begun with
}

// link is what both ends share.
type link struct {
	mu   sync.Mutex
	cond sync.Cond
}

func (l *link) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cond.Broadcast()
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// newLink returns the two ends of a connection.
func newLink() (a, b *memConn) {
	l := &link{}
	l.cond.L = &l.mu
	a, b = &memConn{link: l, window: defaultWindow}, &memConn{link: l, window: defaultWindow}
	a.peer, b.peer = b, a
	return a, b
}

func fail(op string, err error) error { return &net.OpError{Op: op, Net: "mem", Err: err} }

func (c *memConn) Read(b []byte) (int, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, fail("read", net.ErrClosed)
		case c.readBy.passed():
			return 0, fail("read", os.ErrDeadlineExceeded)
		case c.reset:
			return 0, fail("read", syscall.ECONNRESET)
		case len(c.inbox) > 0:
			n := copy(b, c.inbox)
			c.inbox = c.inbox[n:]
			c.link.cond.Broadcast()
			return n, nil
		case c.finished:
			return 0, io.EOF
		}
		c.link.cond.Wait()
	}
}

func (c *memConn) Write(b []byte) (int, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.writes = append(c.writes, len(b))
	if all := c.taken + len(b); all > len(c.offered) {
		c.offered = append(c.offered[:c.taken], b...)
	}
	n := 0
	for {
		switch {
		case c.closed:
			return n, fail("write", net.ErrClosed)
		case c.writeBy.passed():
			return n, fail("write", os.ErrDeadlineExceeded)
		case c.shut, c.reset:
			return n, fail("write", syscall.EPIPE)
		case c.peer.closed: // taken, and answered by a reset
			c.reset, c.inbox = true, nil
			c.taken += len(b) - n
			c.link.cond.Broadcast()
			return len(b), nil
		}
		if room := c.peer.window - len(c.peer.inbox); room > 0 {
			part := b[n:min(len(b), n+room)]
			c.peer.inbox = append(c.peer.inbox, part...)
			n, c.taken = n+len(part), c.taken+len(part)
			c.link.cond.Broadcast()
		}
		if n == len(b) {
			return n, nil
		}
		c.link.cond.Wait()
	}
}

// CloseWrite sends a FIN: the peer reads to the end of what was sent.
func (c *memConn) CloseWrite() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed || c.reset {
		return fail("close", net.ErrClosed)
	}
	c.shut, c.peer.finished = true, true
	c.link.cond.Broadcast()
	return nil
}

// Close sends a FIN, or a reset when there is unread input.
func (c *memConn) Close() error { return c.close(false) }

// Reset ends the connection without a word that the peer could read.
func (c *memConn) Reset() error { return c.close(true) }

func (c *memConn) close(reset bool) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return fail("close", net.ErrClosed)
	}
	c.closed = true
	c.readBy.stop()
	c.writeBy.stop()
	if reset || len(c.inbox) > 0 {
		c.peer.reset, c.peer.inbox = true, nil
	} else {
		c.peer.finished = true
	}
	c.link.cond.Broadcast()
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error  { return c.set(&c.readBy, t) }
func (c *memConn) SetWriteDeadline(t time.Time) error { return c.set(&c.writeBy, t) }

func (c *memConn) SetDeadline(t time.Time) error {
	c.set(&c.readBy, t)
	return c.set(&c.writeBy, t)
}

func (c *memConn) set(d *deadline, t time.Time) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return fail("set", net.ErrClosed)
	}
	d.stop()
	d.at = t
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), c.link.wake)
	}
	c.link.cond.Broadcast()
	return nil
}

func (c *memConn) LocalAddr() net.Addr  { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr { return memAddr{} }

type memAddr struct{}

func (memAddr) Network() string { return "mem" }
func (memAddr) String() string  { return "mem" }

// setWindow sets how much this end takes unread: 0 for a peer that has stopped.
func (c *memConn) setWindow(n int) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.window = n
	c.link.cond.Broadcast()
}

// allow has this end take n bytes more.
func (c *memConn) allow(n int) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.window += n
	c.link.cond.Broadcast()
}

// unread returns what has come to this end and was not read.
func (c *memConn) unread() []byte {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return bytes.Clone(c.inbox)
}

func (c *memConn) isClosed() bool {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.closed
}

// allOffered returns everything that this end has begun to write, taken or not.
func (c *memConn) allOffered() []byte {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return bytes.Clone(c.offered)
}

// takeWrites returns the lengths of the writes since it was called last.
func (c *memConn) takeWrites() []int {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	writes := slices.Clone(c.writes)
	c.writes = nil
	return writes
}

// deadlines returns the deadlines that are set.
func (c *memConn) deadlines() (read, write time.Time) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.readBy.at, c.writeBy.at
}

// memListener hands out the server's ends of connections in memory.
type memListener struct {
	arrivals chan net.Conn
	closed   chan struct{}
	once     sync.Once

	mu     sync.Mutex
	faults []error     // what the next accepts return
	asked  []time.Time // when Accept was called
}

func newMemListener() *memListener {
	return &memListener{arrivals: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	if err := l.nextFault(); err != nil {
		return nil, err
	}
	select {
	case c := <-l.arrivals:
		return c, nil
	case <-l.closed:
		return nil, fail("accept", net.ErrClosed)
	}
}

func (l *memListener) nextFault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, time.Now())
	if len(l.faults) == 0 {
		return nil
	}
	err := l.faults[0]
	l.faults = l.faults[1:]
	return err
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr{} }
