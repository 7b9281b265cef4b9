package client

import (
	"sync/atomic"
	"time"
)

// clock reads two clocks that only go forward: the runtime's monotonic one, by
// which timers and deadlines go and which stands still while the machine sleeps
// on some systems, and one that keeps counting. Leases go by whichever says that
// more time has passed.
type clock struct {
	start time.Time
	timer func() time.Duration // timers go by it: the time since start
	awake func() time.Duration // counts during sleep; any zero

	read  atomic.Int64 // when awake was read last, on mono
	ahead atomic.Int64 // by how much it was ahead of mono then
}

// newClock begins at a second, so that a time of 0 is one that was never set.
func newClock() *clock {
	start := time.Now().Add(-time.Second)
	return &clock{start: start, timer: func() time.Duration { return time.Since(start) }, awake: sleepless}
}

// instant is one moment on both clocks.
type instant struct {
	mono  time.Duration // since a second before the broker's start
	awake time.Duration
}

// mono is the time since the broker's start, and a second, for deadlines and timers.
func (c *clock) mono() time.Duration { return c.timer() }

// time is the moment at which mono is m. It carries the same clock's reading, so
// that a timer for it does not depend on when it is made.
func (c *clock) time(m time.Duration) time.Time { return c.start.Add(m) }

// now reads both clocks, which takes a system call: not under a lock.
func (c *clock) now() instant {
	awake := c.awake() // first: what passes in between must not count as sleep
	now := instant{mono: c.mono(), awake: awake}
	c.read.Store(int64(now.mono))
	c.ahead.Store(int64(now.awake - now.mono))
	return now
}

// recent is now without the system call that now takes, where the sleepless clock was
// read a moment ago. All that it can miss is a sleep since then: it is never too late.
func (c *clock) recent() instant {
	mono := c.mono()
	if mono-time.Duration(c.read.Load()) >= time.Millisecond {
		return c.now()
	}
	return instant{mono: mono, awake: mono + time.Duration(c.ahead.Load())}
}

// since is how much time has passed from then to i, at least.
func (i instant) since(then instant) time.Duration {
	return max(i.mono-then.mono, i.awake-then.awake)
}
