//go:build !linux && !darwin

package client

import "time"

// sleepless is no clock here: the monotonic clock alone decides.
func sleepless() time.Duration { return 0 }
