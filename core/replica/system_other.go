//go:build !linux

package replica

import "time"

// hasRoom is not known here: the node tries.
func hasRoom(string) bool { return true }

func nap(d time.Duration) { time.Sleep(d) }
