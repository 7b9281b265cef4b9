//go:build unix

package server

import (
	"net"
	"syscall"
)

// directWrite writes to a socket without ever waiting for it. One goroutine at a
// time may use it.
type directWrite struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // made once, so that a write allocates nothing
	buf []byte
	n   int
	err error
}

// newDirectWrite returns nil when nc is no plain socket.
func newDirectWrite(nc net.Conn) *directWrite {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	d := &directWrite{raw: raw}
	d.try = d.once
	return d
}

// write writes as much of b as the socket takes at once and returns how much that
// was; taking less is no error.
func (d *directWrite) write(b []byte) (int, error) {
	d.buf, d.n, d.err = b, 0, nil
	err := d.raw.Write(d.try)
	d.buf = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

// once returns true whatever happened: false would wait for the socket.
func (d *directWrite) once(fd uintptr) bool {
	for {
		n, err := syscall.Write(int(fd), d.buf)
		switch err {
		case nil:
			d.n = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
		default:
			d.err = err
		}
		return true
	}
}
