package coretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// readyPatience is how long a client waits for a node to name the leader.
	readyPatience = 2 * time.Second
	// dialPause is the pause before a client tries another node, to twice of it.
	dialPause = 20 * time.Millisecond
)

// Client asks for one thing at a time, and follows the leader as docs/CLIENT.md, section 4
// says: it asks only on a session whose node has named itself as the leader.
type Client struct {
	Number  int
	cluster *Cluster
	random  *rand.Rand
	conn    *conn
	next    string // where to look for the leader first
}

// NewClient returns a client that has not connected yet. Close must end it.
func (c *Cluster) NewClient(number int) *Client {
	return &Client{Number: number, cluster: c, random: rand.New(rand.NewPCG(c.config.Seed, 1000+uint64(number)))}
}

// Acquire asks for a key. It returns the operation when it is decided, or its outcome is
// unknown, and nil when no node served until ctx ended. When ctx ends while it waits, the
// client leaves.
func (c *Client) Acquire(ctx context.Context, key string, wait, lease time.Duration) *Operation {
	return c.do(ctx, &Operation{Client: c.Number, Key: key, Wait: wait, Lease: lease})
}

// Release gives a key back.
func (c *Client) Release(ctx context.Context, key string, token uint64) *Operation {
	return c.do(ctx, &Operation{Client: c.Number, Key: key, Token: token})
}

func (c *Client) do(ctx context.Context, o *Operation) *Operation {
	conn := c.connect(ctx)
	if conn == nil {
		return nil
	}
	select {
	case <-conn.ask(o):
	case <-ctx.Done():
		c.Leave()
	}
	return o
}

// Leave closes the client's connection. What it asked for there is unknown, and its waiter
// leaves the queue.
func (c *Client) Leave() {
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
}

// Close ends the client.
func (c *Client) Close() { c.Leave() }

// connect returns a connection to a node that has named itself the leader, or nil when ctx
// ends first.
func (c *Client) connect(ctx context.Context) *conn {
	for ctx.Err() == nil {
		if c.conn != nil {
			if c.serves(ctx) {
				return c.conn
			}
			c.Leave()
		}
		n := c.cluster.Node(c.next)
		if n == nil {
			n = c.cluster.nodes[c.random.IntN(len(c.cluster.nodes))]
		}
		c.next = ""
		conn, err := dial(n, fmt.Sprintf("client %d", c.Number))
		if err == nil {
			c.conn = conn
			if c.serves(ctx) {
				return conn
			}
			c.Leave()
		}
		pause(ctx, dialPause+time.Duration(c.random.Int64N(int64(dialPause))))
	}
	return nil
}

// serves says whether the node at the other end has named itself. Otherwise it notes where
// to go instead.
func (c *Client) serves(ctx context.Context) bool {
	timer := time.NewTimer(readyPatience)
	defer timer.Stop()
	for {
		leader, next := c.conn.leads()
		if c.conn.hasEnded() {
			c.next = next
			return false
		}
		switch leader {
		case c.conn.run.node.client():
			return true
		case "":
		default:
			c.next = leader
			return false
		}
		select {
		case <-c.conn.news:
		case <-c.conn.ended:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
