package client

import (
	"fmt"
	"time"
)

// Times and bounds of requests (docs/CLIENT.md, sections 2 and 3).
const (
	// immediateTime is the I/O deadline of an acquire with wait 0, lest a stalled
	// transport hold it.
	immediateTime = 5 * time.Second
	// releaseTime is what a release has in all, retries included.
	releaseTime = 5 * time.Second
	// releaseAttempt is what one attempt of a release has.
	releaseAttempt = 2 * time.Second
	// retryFirst is the pause before a certainly unsent acquire, or a release, is
	// tried again; it doubles up to retryAcquire or retryRelease.
	retryFirst   = 10 * time.Millisecond
	retryAcquire = 100 * time.Millisecond
	retryRelease = 200 * time.Millisecond
	// maxReleases is how many releases hold a place at once.
	maxReleases = 128
	// maxCompensations is how many compensations may wait or be under way.
	maxCompensations = 1024
)

// state is where a call is on its way.
type state uint8

const (
	callIdle    state = iota
	callWaiting       // for a place
	callParked        // holds a place, waits for a session
	callQueued        // on a session, certainly unsent in this attempt
	callSent          // may have been sent
	callDone          // decided; its caller has the word, or gets it at the unlock
)

// purpose is whom a call's outcome is for.
type purpose uint8

const (
	forCaller       purpose = iota // a goroutine waits for it
	forCompensation                // a release of a grant that no ticket holds
	forClose                       // a release of a ticket at the broker's close
)

// call is one acquire or release from its admission to its outcome. Everything is
// guarded by the broker's lock, except that its caller owns it before admission
// and after the outcome. Calls are used again; whoever has the outcome may do so.
type call struct {
	done chan struct{} // one slot: the outcome is there

	// The request.
	key     string
	release bool
	purpose purpose
	wait    uint8  // acquire: as asked; what goes out is the time left
	lease   uint8  // acquire
	owner   uint64 // acquire
	token   uint64 // release
	budget  time.Duration
	ticket  *Ticket // acquire: filled in at the grant

	// On both: the times are the broker's clock's.
	began    time.Duration
	deadline time.Duration

	// Where it is.
	state     state
	in        *callList
	prev      *call
	next      *call
	sess      *session      // queued and sent; else where it was last
	twin      *call         // sent: a further release of the same token
	sentAt    instant       // sent: before its frame was handed to the socket
	giveUp    time.Duration // sent: when the session is closed for it, or the attempt ends
	notBefore time.Duration // parked: not tried again until then
	attempts  int           // ended without an answer
	maybeSent bool          // some attempt of a release may have been sent
	mayBeDone bool          // release: an earlier attempt may have been sent, so N may be its doing
	trail     *trail        // its moments, for whoever traces it; nil when nobody does

	fault *fault // the outcome: nil when granted or released
}

// node is where c was last, or empty.
func (c *call) node() string {
	if c.sess == nil {
		return ""
	}
	return c.sess.node.addr
}

// blocking says whether c waits in the server's queue.
func (c *call) blocking() bool { return !c.release && c.wait > 0 }

// due is when something must happen to an unsent c if nothing else does.
func (c *call) due(now time.Duration) time.Duration {
	if c.state == callParked && c.notBefore > now {
		return min(c.notBefore, c.deadline)
	}
	return c.deadline
}

// backOff counts a failed attempt and sets the pause before the next one.
func (c *call) backOff(now time.Duration) {
	longest := retryAcquire
	if c.release {
		longest = retryRelease
	}
	c.notBefore = now + min(retryFirst<<min(c.attempts, 8), longest)
	c.attempts++
}

// asked says in words what an acquire asked for.
func (c *call) asked() string {
	if c.release {
		return ""
	}
	return fmt.Sprintf("wait %ds, lease %ds", c.wait, c.lease)
}

// error is the outcome as the caller sees it, or nil.
func (c *call) error(now time.Duration) error {
	if c.fault == nil {
		return nil
	}
	tried := "acquire"
	if c.release {
		tried = "release"
	}
	return &callError{tried: tried, key: c.key, asked: c.asked(), node: c.node(), took: now - c.began, fault: *c.fault}
}

// reset makes c ready for its next use.
func (c *call) reset() { *c = call{done: c.done} }

// callList is a queue of calls in order; a call is in one at most.
type callList struct {
	head, tail *call
	n          int
}

func (l *callList) push(c *call) {
	c.in, c.prev, c.next = l, l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
	l.n++
}

func (l *callList) remove(c *call) {
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.in, c.prev, c.next = nil, nil, nil
	l.n--
}

func (l *callList) pop() *call {
	c := l.head
	if c != nil {
		l.remove(c)
	}
	return c
}

// each calls f with each call that is in l, and may be out of it afterwards.
func (l *callList) each(f func(*call)) {
	for c := l.head; c != nil; {
		next := c.next
		f(c)
		if next != nil && next.in != l {
			next = l.head // f took it away as well; looking twice does no harm
		}
		c = next
	}
}

// lane gives places to calls of one op: limit of them hold one at once, the others
// wait in order.
type lane struct {
	limit   int
	used    int
	waiting callList
	parked  callList // hold a place, and no session can take them yet
}
