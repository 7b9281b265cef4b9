package coretest

import (
	"sync"

	"github.com/ticketing-io/ticketing/core/service"
)

// maxAsked bounds the requests of a connection that its node has not read.
const maxAsked = 16

// conn is a client's connection to one run of a node, and the sink of its session there. It
// hands over what it is told at once: a client that is told has read it.
type conn struct {
	run     *run
	history *History
	session *service.Session
	asked   chan *Operation // to the connection's reader at the node
	ended   chan struct{}   // closed when the session has ended
	news    chan struct{}   // of capacity one: the leader is another one, or is known at all
	reader  sync.WaitGroup

	mu      sync.Mutex
	leader  string // "" before the ready frame
	next    string // the address of an M
	closed  bool
	severed bool
	waiting map[*Operation]chan struct{} // closed when it is decided
	late    []func()                     // what a paused node has to say
}

// dial connects a client to a node. It fails when the node does not run.
func dial(n *Node, holder string) (*conn, error) {
	r := n.current()
	if r == nil {
		return nil, errDown
	}
	c := &conn{
		run: r, history: n.cluster.History,
		asked: make(chan *Operation, maxAsked), ended: make(chan struct{}), news: make(chan struct{}, 1),
		waiting: make(map[*Operation]chan struct{}),
	}
	r.mu.Lock()
	if r.dead.Load() {
		r.mu.Unlock()
		return nil, errDown
	}
	r.conns[c] = struct{}{}
	r.mu.Unlock()
	c.session = r.service.Open(c, holder)
	c.reader.Go(c.read)
	return c, nil
}

// read is the node's reader of the connection.
func (c *conn) read() {
	for o := range c.asked {
		for c.run.node.isPaused() && !c.hasEnded() {
			select {
			case <-c.ended:
			case <-c.run.node.cluster.Network.resumed(c.run.node.raft()):
			}
		}
		if c.hasEnded() {
			continue
		}
		if o.acquire() {
			c.run.service.Acquire(c.session, service.Acquire{Key: o.Key, Owner: o.Owner, Wait: o.Wait, Lease: o.Lease})
		} else {
			c.run.service.Release(c.session, o.Key, o.Token)
		}
		if c.run.node.serving.Load() == o.Stay {
			c.history.Accept(o)
		}
	}
}

func (c *conn) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// ask asks for an operation and returns a channel that is closed when it is decided.
func (c *conn) ask(o *Operation) <-chan struct{} {
	decided := make(chan struct{})
	o.Node, o.Stay = c.run.node.Name, c.run.node.serving.Load()
	c.history.Begin(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.history.End(o, Unknown, 0)
		close(decided)
		return decided
	}
	c.waiting[o] = decided
	c.asked <- o
	return decided
}

// close leaves the node. What was not decided is unknown.
func (c *conn) close() {
	c.run.service.Leave(c.session)
	c.finish("")
	c.run.mu.Lock()
	delete(c.run.conns, c)
	c.run.mu.Unlock()
	close(c.asked)
	c.reader.Wait()
}

// sever breaks the connection: the process at its other end is gone.
func (c *conn) sever() {
	c.mu.Lock()
	c.severed, c.late = true, nil
	c.mu.Unlock()
	c.finish("")
}

// finish ends the session as the client sees it.
func (c *conn) finish(next string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed, c.next = true, next
	for o, decided := range c.waiting {
		c.history.End(o, Unknown, 0)
		close(decided)
	}
	clear(c.waiting)
	close(c.ended)
}

// tell does what the node has to say, later when it is paused, never when it is gone.
func (c *conn) tell(say func()) {
	paused := c.run.node.isPaused()
	c.mu.Lock()
	switch {
	case c.severed || c.run.dead.Load():
		c.mu.Unlock()
	case paused || len(c.late) > 0:
		c.late = append(c.late, say)
		c.mu.Unlock()
	default:
		c.mu.Unlock()
		say()
	}
}

// catchUp says what a node has kept back while it was paused.
func (c *conn) catchUp() {
	for {
		c.mu.Lock()
		if len(c.late) == 0 {
			c.mu.Unlock()
			return
		}
		say := c.late[0]
		c.late = c.late[1:]
		c.mu.Unlock()
		say()
	}
}

// Deliver takes an answer.
func (c *conn) Deliver(a service.Answer) { c.tell(func() { c.answer(a) }) }

func (c *conn) answer(a service.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, decided := range c.waiting {
		if o.Owner != 0 && o.Owner == a.Owner || o.Owner == 0 && a.Owner == 0 && o.Key == a.Key && o.Token == a.Token {
			c.history.End(o, outcomes[a.Outcome], a.Token)
			close(decided)
			delete(c.waiting, o)
			return
		}
	}
}

// Flush does nothing: an answer is handed over when it is delivered.
func (c *conn) Flush() {}

// Leader takes the leader's address.
func (c *conn) Leader(addr string) {
	c.tell(func() {
		c.mu.Lock()
		c.leader = addr
		c.mu.Unlock()
		select {
		case c.news <- struct{}{}:
		default:
		}
	})
}

// End takes the end of the session.
func (c *conn) End(_ service.EndReason, addr string) { c.tell(func() { c.finish(addr) }) }

// leads returns the leader as the connection knows it, and the address of an M.
func (c *conn) leads() (leader, next string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader, c.next
}
