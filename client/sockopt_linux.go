package client

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// setUserTimeout has the system give a connection up when what was sent on it has
// not been acknowledged for peerTimeout.
func setUserTimeout(_, _ string, conn syscall.RawConn) error {
	var err error
	control := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(peerTimeout.Milliseconds()))
	})
	if control != nil {
		return control
	}
	return err
}
