package client

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// memConn is one end of a buffered connection in memory. It blocks on conditions
// only, so that fake time goes on; net.Pipe has no buffer, and a client that writes
// would wait for a server that does not read yet.
type memConn struct {
	in, out    *memHalf
	readUntil  memDeadline
	writeUntil memDeadline
}

// memHalf is one direction.
type memHalf struct {
	mu     sync.Mutex
	cond   *sync.Cond
	buf    []byte
	room   int   // a write waits while buf is that long
	wrote  error // what a reader gets once buf is empty: the writer's end is closed
	read   error // what a writer gets: the reader's end is closed
	writes int   // calls of Write
}

type memDeadline struct {
	at    time.Time
	timer *time.Timer
}

func memPipe() (client, server *memConn) {
	half := func() *memHalf {
		h := &memHalf{room: 1 << 20}
		h.cond = sync.NewCond(&h.mu)
		return h
	}
	up, down := half(), half()
	return &memConn{in: down, out: up}, &memConn{in: up, out: down}
}

func (c *memConn) Read(p []byte) (int, error) {
	h := c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.read != nil:
			return 0, h.read
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			h.cond.Broadcast()
			return n, nil
		case h.wrote != nil:
			return 0, h.wrote
		case c.readUntil.passed():
			return 0, os.ErrDeadlineExceeded
		}
		h.cond.Wait()
	}
}

func (c *memConn) Write(p []byte) (int, error) {
	h := c.out
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes++
	n := 0
	for n < len(p) {
		switch {
		case h.wrote != nil:
			return n, net.ErrClosed
		case h.read != nil:
			return n, syscall.EPIPE
		case c.writeUntil.passed():
			return n, os.ErrDeadlineExceeded
		case len(h.buf) < h.room:
			part := p[n:min(len(p), n+h.room-len(h.buf))]
			h.buf = append(h.buf, part...)
			n += len(part)
			h.cond.Broadcast()
			continue
		}
		h.cond.Wait()
	}
	return n, nil
}

// setRoom sets how many bytes fit between the ends before a write waits.
func (h *memHalf) setRoom(n int) {
	h.mu.Lock()
	h.room = n
	h.cond.Broadcast()
	h.mu.Unlock()
}

func (h *memHalf) shut(wrote, read error) {
	h.mu.Lock()
	if wrote != nil && h.wrote == nil {
		h.wrote = wrote
	}
	if read != nil && h.read == nil {
		h.read = read
	}
	h.cond.Broadcast()
	h.mu.Unlock()
}

// Close ends both directions; the other end still reads what was written.
func (c *memConn) Close() error {
	c.out.shut(io.EOF, nil)
	c.in.shut(nil, net.ErrClosed)
	return nil
}

// reset ends both directions at once, as a TCP reset does.
func (c *memConn) reset() {
	c.out.mu.Lock()
	c.out.buf = nil
	c.out.mu.Unlock()
	c.out.shut(syscall.ECONNRESET, nil)
	c.in.shut(nil, net.ErrClosed)
}

func (d *memDeadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *memDeadline) set(h *memHalf, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() {
			h.mu.Lock()
			h.cond.Broadcast()
			h.mu.Unlock()
		})
	}
	h.cond.Broadcast()
}

func (c *memConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}
func (c *memConn) SetReadDeadline(t time.Time) error  { c.readUntil.set(c.in, t); return nil }
func (c *memConn) SetWriteDeadline(t time.Time) error { c.writeUntil.set(c.out, t); return nil }
func (c *memConn) LocalAddr() net.Addr                { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr               { return memAddr{} }

type memAddr struct{}

func (memAddr) Network() string { return "mem" }
func (memAddr) String() string  { return "mem" }
