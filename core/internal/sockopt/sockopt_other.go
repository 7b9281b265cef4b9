//go:build !linux

package sockopt

import (
	"syscall"
	"time"
)

// UserTimeout is not to be had here: the system's own bound holds.
func UserTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
