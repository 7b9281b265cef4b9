package coretest

import (
	"context"
	"fmt"
	"time"
)

// Workload is what seeded clients do.
type Workload struct {
	Clients  int
	Keys     int
	MaxWait  time.Duration // whole seconds, as on the wire
	MaxLease time.Duration
	MaxHold  time.Duration // beyond MaxLease, so that leases run out as well
	MaxPause time.Duration // between two acquires
}

// run runs one client until ctx ends: it acquires a key, holds it for a while, and gives it
// back, mostly. A part of the time it is impatient, forgets to release, releases what is not
// its own, or breaks its connection.
func (w Workload) run(ctx context.Context, c *Client) {
	defer c.Close()
	random := c.random
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d) + 1)) }
	seconds := func(d time.Duration) time.Duration {
		return time.Duration(random.IntN(int(d/time.Second)+1)) * time.Second
	}
	for ctx.Err() == nil {
		key := fmt.Sprintf("key-%d", random.IntN(w.Keys))
		patience, cancel := ctx, context.CancelFunc(func() {})
		if random.IntN(10) == 0 {
			patience, cancel = context.WithTimeout(ctx, upTo(w.MaxWait))
		}
		o := c.Acquire(patience, key, seconds(w.MaxWait), max(time.Second, seconds(w.MaxLease)))
		cancel()
		switch {
		case o == nil || o.Outcome != Granted:
		case random.IntN(10) == 0: // forgotten: its lease ends it
		default:
			pause(ctx, upTo(w.MaxHold))
			token := o.Token
			if random.IntN(20) == 0 {
				token--
			}
			c.Release(ctx, key, token)
		}
		if random.IntN(20) == 0 {
			c.Leave()
		}
		pause(ctx, upTo(w.MaxPause))
	}
}
