package node_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"github.com/ticketing-io/ticketing/core/wire"
)

// rawClient is a session without a client library between, so that a figure is the
// server's.
type rawClient struct {
	net.Conn
	replies wire.ReplyDecoder
	buf     [16 << 10]byte
	out     []byte
}

func dialRaw(tb testing.TB, addr, token string) *rawClient {
	tb.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	c := &rawClient{Conn: nc}
	if err := c.authenticate(token); err != nil {
		tb.Fatal(err)
	}
	return c
}

func (c *rawClient) authenticate(token string) error {
	r := bufio.NewReaderSize(c.Conn, 16)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	nonce, err := wire.ParseChallenge(line[:len(line)-1])
	if err != nil {
		return err
	}
	digest := wire.Digest([]byte(token), nonce)
	if _, err := c.Write(append(digest[:], '\n')); err != nil {
		return err
	}
	ready, err := c.read()
	if err == nil && ready.Op != wire.OpEmpty {
		err = fmt.Errorf("ready frame %+v", ready)
	}
	return err
}

// acquire buffers an acquire; flush sends what is buffered.
func (c *rawClient) acquire(key string, wait, lease uint8, owner uint64) {
	c.out = wire.Request{Op: wire.OpAcquire, Wait: wait, Lease: lease, Owner: owner, Key: key}.Append(c.out)
}

func (c *rawClient) release(key string, token uint64) {
	c.out = wire.Request{Op: wire.OpRelease, Token: token, Key: key}.Append(c.out)
}

func (c *rawClient) flush() error {
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// read returns the next reply.
func (c *rawClient) read() (wire.Reply, error) {
	for {
		if r, ok := c.replies.Next(); ok {
			return r, nil
		}
		if err := c.replies.Err(); err != nil {
			return wire.Reply{}, err
		}
		n, err := c.Read(c.buf[:])
		if err != nil {
			return wire.Reply{}, err
		}
		c.replies.Feed(c.buf[:n])
	}
}
