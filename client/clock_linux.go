package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepless reads CLOCK_BOOTTIME, which counts while the machine sleeps.
func sleepless() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0 // the monotonic clock alone decides then
	}
	return time.Duration(ts.Nano())
}
