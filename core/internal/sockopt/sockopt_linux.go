package sockopt

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// UserTimeout returns a net.ListenConfig's or net.Dialer's Control that has the system
// give a connection up when what was sent on it has not been acknowledged for so long.
// The system's own bound is a quarter of an hour.
func UserTimeout(after time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, conn syscall.RawConn) error {
		var err error
		control := conn.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		})
		if control != nil {
			return control
		}
		return err
	}
}
