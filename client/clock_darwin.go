package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepless reads CLOCK_MONOTONIC, which on this system counts while the machine
// sleeps; the runtime's own clock does not.
func sleepless() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0 // the runtime's clock alone decides then
	}
	return time.Duration(ts.Nano())
}
