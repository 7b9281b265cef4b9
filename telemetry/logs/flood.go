package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// floodLines is how many lines with one text and level are written in a floodTime:
	// enough to see who and why.
	floodLines = 10
	// floodTime is how long lines are counted together.
	floodTime = time.Second
	// floodTexts bounds the texts that are remembered, at some 100 bytes each. The
	// program has fewer; what is not the program's own is counted under one text beyond.
	floodTexts = 256
)

// flood leaves lines out when there are too many with one text and level, and says how
// many: with the next one that is written, or by a line of its own once none has come
// for a while. Errors are never left out, for each is somebody's to mend; nor is what is
// logged for debugging, which nobody asks for without wanting all of it.
type flood struct {
	slog.Handler
	*counts
}

// counts are of a logger and all that were made of it.
type counts struct {
	base slog.Handler // writes the line that ends a flood

	mu    sync.Mutex
	texts map[kind]*count
}

// kind is what lines are counted by. The zero kind is everything beyond floodTexts.
type kind struct {
	text  string
	level slog.Level
}

// count is of the lines of one kind. Its timer is set while something is left out and
// not told yet.
type count struct {
	since   time.Time // when the time began that lines are counted in
	lines   int       // written in it
	leftOut int       // since it was last told
	timer   *time.Timer
}

func newFlood(h slog.Handler) flood {
	return flood{h, &counts{base: h, texts: make(map[kind]*count)}}
}

// Handle writes a line or leaves it out.
func (f flood) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo || r.Level >= slog.LevelError {
		return f.Handler.Handle(ctx, r)
	}
	leftOut, write := f.take(kind{r.Message, r.Level}, time.Now())
	if !write {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int(LeftOut, leftOut))
	}
	return f.Handler.Handle(ctx, r)
}

// take counts a line, and says whether it is to be written and what is to be told with
// it.
func (c *counts) take(k kind, now time.Time) (leftOut int, write bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, n := c.count(k, now)
	if now.Sub(n.since) >= floodTime {
		n.since, n.lines = now, 0
	}
	if n.lines >= floodLines {
		if n.leftOut++; n.timer == nil {
			n.timer = time.AfterFunc(n.quietIn(now), func() { c.over(k) })
		}
		return 0, false
	}
	n.lines++
	leftOut, n.leftOut = n.leftOut, 0
	return leftOut, true
}

// count returns the count of a kind, or the common one when too many are remembered.
func (c *counts) count(k kind, now time.Time) (kind, *count) {
	if n := c.texts[k]; n != nil {
		return k, n
	}
	if len(c.texts) >= floodTexts {
		c.forget(now)
	}
	if len(c.texts) >= floodTexts {
		k = kind{level: k.level}
	}
	n := c.texts[k]
	if n == nil {
		n = &count{since: now}
		c.texts[k] = n
	}
	return k, n
}

// forget drops the kinds that have not come for a while.
func (c *counts) forget(now time.Time) {
	for k, n := range c.texts {
		if n.timer == nil && now.Sub(n.since) >= floodTime {
			delete(c.texts, k)
		}
	}
}

// quietIn is when a flood is over unless a line is written before: a while after the next
// one could be.
func (n *count) quietIn(now time.Time) time.Duration {
	return n.since.Add(2 * floodTime).Sub(now)
}

// over tells what was left out at a flood's end. While the flood goes on, its lines tell.
func (c *counts) over(k kind) {
	c.mu.Lock()
	n, now := c.texts[k], time.Now()
	if n.leftOut > 0 && n.quietIn(now) > 0 {
		n.timer.Reset(n.quietIn(now))
		c.mu.Unlock()
		return
	}
	leftOut := n.leftOut
	n.leftOut, n.timer = 0, nil
	c.mu.Unlock()
	if leftOut == 0 {
		return
	}
	ctx := context.Background()
	if !c.base.Enabled(ctx, k.level) {
		return
	}
	r := slog.NewRecord(now, k.level, "lines were left out", 0)
	r.AddAttrs(slog.String("like", k.text), slog.Int(LeftOut, leftOut))
	_ = c.base.Handle(ctx, r) // as slog.Logger does: a log that can't be written can't be told of
}

// WithAttrs adds attributes to every line.
func (f flood) WithAttrs(attrs []slog.Attr) slog.Handler {
	return flood{f.Handler.WithAttrs(attrs), f.counts}
}

// WithGroup puts what follows into a group.
func (f flood) WithGroup(name string) slog.Handler {
	return flood{f.Handler.WithGroup(name), f.counts}
}
