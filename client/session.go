package client

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// replyBatch is how many replies are taken under one lock: enough to share its
// cost, few enough that callers don't wait for it.
const replyBatch = 64

// Times of a session (docs/CLIENT.md, sections 2 to 4).
const (
	// retireTime is what a session has to answer what is under way once another
	// node leads.
	retireTime = time.Second
	// idleTime is how long an extra session may be without a call.
	idleTime = 30 * time.Second
)

// sessionState is how far a session is.
type sessionState uint8

const (
	sessionOpening  sessionState = iota // no ready frame yet
	sessionWarm                         // its node is not the leader
	sessionServing                      // takes calls
	sessionRetiring                     // another node leads: answers what is under way
	sessionEnded
)

// session is one connection to a node that passed, or passes, the handshake. Two
// goroutines drive it: its slot's reads, and one writes.
type session struct {
	b    *Broker
	slot *slot
	node *node
	raw  net.Conn // what is closed to end the session
	conn net.Conn // raw, or TLS on it

	// The reader's own.
	buf   []byte
	rest  []byte // read with the challenge, not yet looked at
	dec   wire.ReplyDecoder
	batch []wire.Reply // decoded, not yet taken

	// The writer's own.
	traced []*trail // of the calls in the write under way

	wake chan struct{} // one slot: the writer has something to do
	stop chan struct{} // closed at the end

	// Guarded by the broker's lock.
	state     sessionState
	awaited   string        // opening: what has not come yet, in words
	ending    error         // why it ended
	readyAt   time.Duration // when the ready frame came; 0 before
	sawLeader bool          // an L came: the tokens are a cluster's
	retireAt  time.Duration // when a retiring session is closed
	lastUsed  time.Duration // when something was last written

	writing      bool          // the writer is awake
	writeSince   time.Duration // when the write under way began; 0 when there is none
	releases     callList      // unsent
	acquires     callList      // unsent
	blocking     int           // blocking acquires, sent or not
	sentOwners   table
	sentTokens   table
	sentAcquires callList
	sentReleases callList

	probe probe
}

func newSession(b *Broker, sl *slot, raw net.Conn) *session {
	return &session{
		b: b, slot: sl, node: sl.node, raw: raw, conn: raw,
		buf:   make([]byte, readBuffer),
		batch: make([]wire.Reply, 0, replyBatch),
		wake:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
	}
}

// register makes s known to the broker, which may be closed by now.
func (s *session) register() error {
	b := s.b
	b.mu.Lock()
	defer b.unlock()
	if b.closed {
		return errBrokerClosed
	}
	s.slot.sess = s
	return nil
}

// run drives s until its end and returns why it ended.
func (s *session) run() error {
	var writer sync.WaitGroup
	writer.Go(s.write)
	s.read()
	writer.Wait()
	return s.ending // set before stop was closed, never changed
}

func (s *session) isReady() bool {
	s.b.mu.Lock()
	defer s.b.unlock()
	return s.readyAt > 0
}

// enqueue hands c to the writer. mu is held here and below.
func (s *session) enqueue(c *call, now time.Duration) {
	c.state, c.sess = callQueued, s
	c.trail.queue(now)
	if c.release {
		s.releases.push(c)
	} else {
		s.acquires.push(c)
	}
	if c.blocking() {
		s.blocking++
	}
	s.wakeWriter()
}

func (s *session) wakeWriter() {
	if !s.writing {
		s.writing = true
		s.wake <- struct{}{}
	}
}

// left counts c out; it is no longer on s.
func (s *session) left(c *call) {
	if c.blocking() {
		s.blocking--
	}
	if s.state == sessionRetiring && s.empty() {
		s.b.touch(0)
	}
}

func (s *session) empty() bool {
	return s.releases.n+s.acquires.n+s.sentReleases.n+s.sentAcquires.n == 0
}

// remember expects a reply to c, which is being sent.
func (s *session) remember(c *call) {
	if !c.release {
		s.sentOwners.set(c.owner, c)
		s.sentAcquires.push(c)
		return
	}
	c.twin = nil
	s.sentReleases.push(c)
	last := s.sentTokens.get(c.token)
	if last == nil {
		s.sentTokens.set(c.token, c)
		return
	}
	for last.twin != nil {
		last = last.twin
	}
	last.twin = c
}

// forget expects no reply to c any longer.
func (s *session) forget(c *call) {
	if !c.release {
		s.sentOwners.remove(c.owner)
		return
	}
	first := s.sentTokens.get(c.token)
	switch {
	case first == c && c.twin == nil:
		s.sentTokens.remove(c.token)
	case first == c:
		s.sentTokens.set(c.token, c.twin)
	default:
		for first.twin != c {
			first = first.twin
		}
		first.twin = c.twin
	}
	c.twin = nil
}

// end closes s because of why, the first time it is called. What may have been sent
// is decided, what was not moves on.
func (b *Broker) end(s *session, why error, now time.Duration) {
	if s.state == sessionEnded {
		return
	}
	s.stopServing()
	s.state, s.ending = sessionEnded, why
	close(s.stop)
	b.hangups = append(b.hangups, s.raw)
	for c := s.sentAcquires.head; c != nil; c = s.sentAcquires.head {
		b.finish(c, indeterminate(why), now)
	}
	for c := s.sentReleases.head; c != nil; c = s.sentReleases.head {
		b.retry(c, now)
	}
	s.moveOn(now)
	b.signal()
}

// indeterminate is the outcome of an acquire that may have been sent on a session
// that ended because of why.
func indeterminate(why error) *fault {
	return &fault{kind: ErrIndeterminate, cause: why, why: "the session ended before the answer"}
}

// stopServing takes s out of those that are given calls.
func (s *session) stopServing() {
	n := s.node
	for i, o := range n.serving {
		if o == s {
			n.serving = append(n.serving[:i:i], n.serving[i+1:]...)
			break
		}
	}
	if n.kept == s {
		n.kept = nil
	}
}

// moveOn gives the unsent calls of s to other sessions.
func (s *session) moveOn(now time.Duration) {
	for _, l := range []*callList{&s.releases, &s.acquires} {
		for c := l.head; c != nil; c = l.head {
			s.b.retry(c, now)
		}
	}
}

// retry takes c from its session and has it tried again after a pause.
func (b *Broker) retry(c *call, now time.Duration) {
	b.unlink(c)
	c.backOff(now)
	b.place(c, now)
}

// retire ends s within a second, because another node leads.
func (b *Broker) retire(s *session, now time.Duration) {
	s.stopServing()
	s.state, s.retireAt = sessionRetiring, now+retireTime
	b.touch(s.retireAt)
	s.moveOn(now)
	if s.empty() {
		b.touch(0)
	}
	b.signal()
}

// tellEnd notes how a session, or the attempt to open one, ended.
func (b *Broker) tellEnd(sl *slot, s *session, err error, now time.Duration) {
	if b.closed && (s == nil || s.readyAt == 0) {
		return // Close cut the dial off
	}
	if s != nil && s.readyAt > 0 {
		b.note(note{
			Event: Event{Kind: EventSessionClosed, Node: sl.node.addr, Took: now - s.readyAt, Err: err},
			text:  "session closed",
			level: levelOf(err),
		})
		return
	}
	level := levelOf(err)
	if sl.fails > 0 {
		level = slog.LevelDebug // said when it failed first
	}
	b.note(note{
		Event: Event{Kind: EventDial, Node: sl.node.addr, Took: now - sl.since, Err: err},
		text:  "session not opened",
		level: level,
	})
}
