package server

import (
	"testing"
	"testing/synctest"

	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

// What was received and sent is every byte on the sockets, the handshake included.
func TestStatsCountEveryByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 7})
		const handshake = wire.DigestLen + 1 // the digest and its newline
		challenge := len("SHA-256 ") + wire.NonceLen + 1 + len("\n")
		c := w.connect()
		synctest.Wait()
		w.expectStats(Stats{Connections: 1, Limit: 7, Received: handshake, Sent: uint64(challenge)})

		ask, answer := acquire("k", 0, 9, 1), granted("k", 1, 1)
		c.send(ask)
		c.expect(answer)
		synctest.Wait()
		w.expectStats(Stats{Connections: 1, Limit: 7, Received: uint64(handshake + len(ask)), Sent: uint64(challenge + len(answer))})
	})
}

// Answers count as pending from their decision until a write takes them along, or until
// their connection has ended.
func TestStatsCountPendingAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := answering()
		w := newWorldOf(t, svc, Config{})
		c := w.connect()
		synctest.Wait()
		sink := svc.sink()
		c.end.setWindow(1)
		grant(sink, "in a write", 1)
		synctest.Wait()
		grant(sink, "queued", 2)
		sink.Deliver(service.Answer{Outcome: service.TimedOut, Key: "queued too"})
		if got := w.server.Stats().Pending; got != 2 {
			t.Errorf("%d answers are pending, want 2", got)
		}
		c.end.Reset()
		synctest.Wait()
		if st := w.server.Stats(); st.Pending != 0 || st.Connections != 0 {
			t.Errorf("after its connection's end: %+v", st)
		}
	})
}

// What was moved never becomes less, whatever becomes of a connection: it is displaced, or
// it ends.
func TestStatsNeverForgetAByte(t *testing.T) {
	s := New(nil, Config{MaxConnections: 1})
	_, nc := newLink()
	first, second := newConn(s, nc), newConn(s, nc)
	s.enrol(first)
	first.traffic.received.Add(10)
	s.enrol(second)
	first.traffic.received.Add(1) // it has been displaced, and still reads
	second.traffic.received.Add(100)
	for _, c := range []*conn{nil, first, second} {
		if c != nil {
			s.ended(c, ClosedDisplaced)
		}
		if got := s.Stats().Received; got != 111 {
			t.Errorf("%d bytes were received, want 111", got)
		}
	}
}

func (w *world) expectStats(want Stats) {
	w.t.Helper()
	if got := w.server.Stats(); got != want {
		w.t.Errorf("got %+v, want %+v", got, want)
	}
}
