package lock

import "time"

// maxTime is where the machine's time stands still, 146 years after its beginning,
// and maxLease is the longest lease that it can add to it without an overflow.
const (
	maxTime  time.Duration = 1 << 62
	maxLease time.Duration = 1 << 61
)

// clock is the machine's time, as entries tell it.
type clock struct {
	now     time.Duration // never goes back
	reign   uint64        // the latest; 0 before the first
	elapsed time.Duration // of the latest entry of that reign
	quiet   time.Duration // nothing is granted before; later than now, or 0
}

// begin begins a reign: its first entry adds no time.
func (c *clock) begin(elapsed time.Duration) {
	c.reign++
	c.elapsed = max(elapsed, 0)
}

// advance moves the time on as Entry says.
func (c *clock) advance(reign uint64, elapsed time.Duration) {
	if reign != c.reign || reign == 0 || elapsed <= c.elapsed {
		return
	}
	c.now = min(c.now+min(elapsed-c.elapsed, maxTime), maxTime)
	c.elapsed = elapsed
	if c.quiet <= c.now {
		c.quiet = 0
	}
}
