package client_test

import (
	"io"
	"net"
	"sync"

	"github.com/ticketing-io/ticketing/core/wire"
)

// startServer runs the least of a lock server, for the examples: no queue, no lease,
// no token.
func startServer() (addr string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var (
		sessions sync.WaitGroup
		mu       sync.Mutex
		held     = map[string]uint64{}
		token    uint64
	)
	decide := func(r wire.Request) wire.Reply {
		mu.Lock()
		defer mu.Unlock()
		reply := wire.Reply{Token: r.Token, Owner: r.Owner, Text: r.Key}
		switch {
		case r.Op == wire.OpRelease && r.Token == held[r.Key] && r.Token > 0:
			delete(held, r.Key)
			reply.Op = wire.OpRelease
		case r.Op == wire.OpRelease:
			reply.Op = wire.OpNotCurrent
		case held[r.Key] > 0:
			reply.Op = wire.OpTimeout
		default:
			token++
			held[r.Key] = token
			reply.Op, reply.Token = wire.OpAcquire, token
		}
		return reply
	}
	serve := func(conn net.Conn) {
		defer conn.Close()
		conn.Write(wire.AppendChallenge(nil, wire.NewNonce()))
		if _, err := io.ReadFull(conn, make([]byte, wire.DigestLen+1)); err != nil {
			return
		}
		conn.Write(wire.Reply{Op: wire.OpEmpty}.Append(nil))
		var dec wire.RequestDecoder
		buf := make([]byte, wire.ReadBuffer)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			dec.Feed(buf[:n])
			for r, ok := dec.Next(); ok; r, ok = dec.Next() {
				conn.Write(decide(r).Append(nil))
			}
		}
	}
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { serve(conn) })
		}
	})
	return listener.Addr().String(), func() { listener.Close(); sessions.Wait() }
}
