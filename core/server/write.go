package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// maxReplyFrame is the longest reply with its newline: a grant of the longest key.
const maxReplyFrame = 1 + 8 + 8 + wire.MaxKey + 1

// batches has buffers for one write each, so that an idle connection has none.
var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, wire.MaxWriteBatch*maxReplyFrame)
	return &b
}}

// leader marks an element of a connection's queue that is no answer: its key is the
// leader's address, which stands in one order with the answers.
const leader service.Outcome = 0

// ops is the one table from what the service decides to what the client reads.
var ops = [...]wire.Op{
	leader:             wire.OpLeader,
	service.Granted:    wire.OpAcquire,
	service.TimedOut:   wire.OpTimeout,
	service.Busy:       wire.OpBusy,
	service.Released:   wire.OpRelease,
	service.NotCurrent: wire.OpNotCurrent,
}

func reply(a *service.Answer) wire.Reply {
	if a.Outcome == leader && a.Key == "" {
		return wire.Reply{Op: wire.OpEmpty} // a single server's ready frame
	}
	return wire.Reply{Op: ops[a.Outcome], Token: a.Token, Owner: a.Owner, Text: a.Key}
}

// Deliver queues an answer (service.Sink).
func (c *conn) Deliver(a service.Answer) {
	c.mu.Lock()
	c.queue = append(c.queue, a)
	c.mu.Unlock()
}

// Leader queues the leader's address (service.Sink). The first time that is the ready
// frame.
func (c *conn) Leader(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.queue = append(c.queue, service.Answer{Outcome: leader, Key: addr})
	if c.ready {
		return
	}
	c.ready = true
	if c.watching && !c.ending {
		c.nc.SetReadDeadline(longPast)
	}
	c.room.Broadcast()
}

// End ends the connection behind what is queued (service.Sink).
func (c *conn) End(reason service.EndReason, addr string) {
	switch reason {
	case service.EndMoved:
		c.endSoon(ClosedMoved, wire.Reply{Op: wire.OpMoved, Text: addr})
	case service.EndNoLeader:
		c.endSoon(ClosedNoLeader, errorReply(wire.NoLeader))
	case service.EndNotActive:
		c.endSoon(ClosedNotActive, errorReply(wire.NotActive))
	}
}

// Flush sends what others have caused (service.Sink): one batch here and now if
// the socket takes it, since a goroutine switch would cost the waiter more than
// the write costs us; the rest in the background.
func (c *conn) Flush() {
	if c.direct != nil && !c.flushDirectly() {
		return
	}
	c.flushInBackground()
}

// flushDirectly writes one batch without waiting. It returns false when there is
// nothing left for the caller to see to.
func (c *conn) flushDirectly() bool {
	batch := batches.Get().(*[]byte)
	if !c.take(batch) {
		batches.Put(batch)
		return false
	}
	n, err := c.writeDirectly(*batch)
	if err == nil && n < len(*batch) {
		c.writeInBackground((*batch)[n:])
		return false
	}
	batches.Put(batch)
	c.wrote(err)
	return true
}

// writeDirectly writes as much as the socket takes at once.
func (c *conn) writeDirectly(b []byte) (int, error) {
	n, err := c.direct.write(b)
	c.traffic.sent.Add(uint64(n))
	return n, err
}

// writeInBackground goes on with a write that has begun, from a goroutine of its
// own, and then sends what is queued.
func (c *conn) writeInBackground(rest []byte) {
	// The connection's own goroutine is counted until nobody writes, so the count is
	// not zero here.
	c.server.wg.Add(1)
	go func() {
		defer c.server.wg.Done()
		_, err := c.stream.Write(rest)
		c.wrote(err)
		c.flush()
	}()
}

// flushInBackground sends what is queued from a goroutine of its own, unless
// somebody writes, who looks again, or another such goroutine is about to.
func (c *conn) flushInBackground() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.writing || c.flusher || len(c.queue) == 0 {
		return
	}
	c.flusher = true
	c.server.wg.Add(1) // not zero: the connection's own goroutine has not closed it
	go func() {
		defer c.server.wg.Done()
		c.mu.Lock()
		c.flusher = false
		c.mu.Unlock()
		c.flush()
	}()
}

// flush sends what is queued, batch by batch, and waits for the peer to take it. It
// leaves that to another goroutine that is writing already.
func (c *conn) flush() {
	batch := batches.Get().(*[]byte)
	defer batches.Put(batch)
	for c.take(batch) {
		n, err := 0, error(nil)
		if c.direct != nil {
			n, err = c.writeDirectly(*batch)
		}
		if err == nil && n < len(*batch) {
			_, err = c.stream.Write((*batch)[n:])
		}
		c.wrote(err)
	}
}

// flushAll sends what is queued, whoever writes it.
func (c *conn) flushAll() {
	for {
		c.flush()
		c.mu.Lock()
		for c.writing && !c.closed {
			c.room.Wait()
		}
		done := c.closed || len(c.queue) == 0
		c.mu.Unlock()
		if done {
			return
		}
	}
}

// take begins a write: it moves up to a batch of answers into buf. From here on
// they count as delivered, whatever becomes of the write, since the client may have
// read them. finish decides under the same lock which ones never were.
func (c *conn) take(buf *[]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.writing || len(c.queue) == 0 {
		return false
	}
	n := min(len(c.queue), wire.MaxWriteBatch)
	out := (*buf)[:0]
	for i := range c.queue[:n] {
		out = reply(&c.queue[i]).Append(out)
		if f := c.queue[i].Sent; f != nil {
			c.sent = append(c.sent, f)
		}
	}
	*buf = out
	c.dequeue(n)
	c.writing, c.since = true, time.Now()
	c.room.Broadcast()
	return true
}

// dequeue drops the first n answers, and the queue's memory after a burst.
func (c *conn) dequeue(n int) {
	rest := c.queue[n:]
	switch {
	case len(rest) > 0:
		c.queue = rest
	case cap(c.queue) > wire.MaxWriteBatch:
		c.queue = nil
	default:
		clear(c.queue)
		c.queue = c.queue[:0]
	}
}

// wrote ends a write. A write that failed is the last one: under the same lock, lest
// another begins and takes grants along that nobody will read.
func (c *conn) wrote(err error) {
	c.mu.Lock()
	sent := c.sent
	c.writing, c.sent = false, nil
	switch {
	case errors.Is(err, errSlow):
		c.closeLocked(ClosedSlow)
	case err != nil:
		c.closeLocked(ClosedWrite)
	}
	c.room.Broadcast()
	c.mu.Unlock()
	for _, f := range sent {
		f()
	}
	if err != nil {
		c.cut()
	}
}

// makeRoom sends a full batch, and waits while too many answers are queued. It
// returns false once the connection is closed.
func (c *conn) makeRoom() bool {
	c.mu.Lock()
	full, closed := len(c.queue) >= wire.MaxWriteBatch || c.full(), c.closed
	c.mu.Unlock()
	if full && !closed {
		c.flush()
		c.awaitRoom()
	}
	return !closed
}

// full says whether so many answers wait that no more requests may be read or asked.
// Those to probes that grants under way hold back are among them.
func (c *conn) full() bool {
	return len(c.queue)+c.session.HeldProbes() >= wire.MaxPendingReplies
}

// awaitRoom waits until so few answers wait that more requests may be read or asked,
// or until nothing is written any more.
func (c *conn) awaitRoom() {
	for {
		c.mu.Lock()
		for !c.closed && c.full() && (c.writing || len(c.queue) == 0 && !c.ending) {
			c.room.Wait() // for the write, or for held answers, which somebody else writes
		}
		ok := c.closed || !c.full() || len(c.queue) == 0
		c.mu.Unlock()
		if ok {
			return
		}
		c.flush()
	}
}

// awaitWriter waits until nobody writes.
func (c *conn) awaitWriter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing {
		c.room.Wait()
	}
}

// errSlow: the peer does not read its answers.
var errSlow = errors.New("the peer does not read its answers")

// writeStep is how often a write that waits for the peer looks whether it has
// waited too long.
const writeStep = 250 * time.Millisecond

// patientConn is a socket whose writes wait for the peer as long as the protocol
// lets them (docs/PROTOCOL.md, section 4). It lies below TLS, whose own writes can't
// go on after a deadline.
type patientConn struct {
	net.Conn
	c *conn
}

// Read reads what has come.
func (p patientConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.c.heard = p.c.heard || n > 0
	p.c.traffic.received.Add(uint64(n))
	return n, err
}

// Write writes all of b. Its error is errSlow when nothing is taken for 5 s, or
// when the connection is too slow for what waits behind the write.
func (p patientConn) Write(b []byte) (int, error) {
	defer p.Conn.SetWriteDeadline(time.Time{})
	written, progress := 0, time.Now()
	for {
		p.Conn.SetWriteDeadline(time.Now().Add(writeStep))
		n, err := p.Conn.Write(b[written:])
		p.c.traffic.sent.Add(uint64(n))
		written += n
		if written == len(b) || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		now := time.Now()
		if n > 0 {
			progress = now
		}
		if now.Sub(progress) >= wire.WriteTimeout || p.c.tooSlow(now) {
			return written, errSlow
		}
	}
}

// tooSlow says whether a full queue waits behind a write that has been under way
// for a second.
func (c *conn) tooSlow(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writing && c.session != nil && c.full() && now.Sub(c.since) >= wire.SlowWrite
}
