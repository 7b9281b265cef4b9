package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// At the limit a new connection is closed at once, without a word.
func TestBeyondTheLimitAConnectionIsClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 8})
		var all []*client
		for range 8 {
			all = append(all, w.connect())
		}
		start := w.now()
		c := w.dial()
		c.expectEnd()
		if took := w.now() - start; took != 0 {
			t.Errorf("it took %v", took)
		}
		w.seen.expect(t, map[CloseReason]int{ClosedLimit: 1})
		if got := w.server.Connections(); got != 8 {
			t.Errorf("%d connections, want 8", got)
		}

		all[3].end.Close()
		synctest.Wait()
		w.connect() // there is room again
		w.seen.expect(t, map[CloseReason]int{ClosedLimit: 1, ClosedByClient: 1})
	})
}

// A quarter of the connections may be in their handshake. One more, and the oldest
// such is closed; who has authenticated never is.
func TestTheOldestStrangerIsDisplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 16})
		in := []*client{w.connect(), w.connect()}
		var strangers []*client
		for range 4 {
			strangers = append(strangers, w.dial())
		}
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{})

		strangers[0].authenticate("") // the oldest becomes known, and has its place for good
		for range 3 {
			strangers = append(strangers, w.dial())
		}
		synctest.Wait()
		w.seen.expect(t, map[CloseReason]int{ClosedDisplaced: 2})
		for i, c := range strangers[1:] {
			if gone := c.end.peer.isClosed(); gone != (i < 2) {
				t.Errorf("stranger %d: closed is %v, want the two oldest closed", i, gone)
			}
		}
		for i, c := range append(in, strangers[0]) {
			c.send(acquire("k", 0, 1, 7) + release("k", uint64(i+1)))
			c.expect(granted("k", uint64(i+1), 7) + released("k", uint64(i+1)))
		}
	})
}

// Strangers fill no more than their share even when everything is full: a newcomer
// displaces the oldest of them.
func TestStrangersDontKeepClientsOutOfAFullServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 8})
		for range 6 {
			w.connect()
		}
		first, second := w.dial(), w.dial()
		synctest.Wait()
		if got := w.server.Connections(); got != 8 {
			t.Fatalf("%d connections, want a full server", got)
		}
		w.connect()
		synctest.Wait()
		if !first.end.peer.isClosed() || second.end.peer.isClosed() {
			t.Error("a client at a full server does not displace the oldest stranger")
		}
		w.seen.expect(t, map[CloseReason]int{ClosedDisplaced: 1})
	})
}

// Wrong tokens come fast (published clients dial again at once after a refusal).
// Those that wait to be refused keep nobody out.
func TestAFloodOfWrongTokensKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 8, Tokens: tokensOf("right")})
		for range 100 {
			c := w.dial()
			c.challenge()
			c.send(c.digest("wrong"))
			synctest.Wait()
		}
		c := w.dial()
		c.authenticate("right")
		if got := w.server.Connections(); got > 3 {
			t.Errorf("%d connections, want the client and two strangers", got)
		}
		if got := w.seen.reasons()[ClosedLimit]; got != 0 {
			t.Errorf("%d connections were closed for the limit", got)
		}
	})
}

// A connection whose token was found right is a stranger no more, even before it
// has got its ready frame.
func TestAConnectionThatIsLetInIsNotDisplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{MaxConnections: 4})
		c := w.dial()
		c.challenge()
		c.end.setWindow(0) // its ready frame waits
		c.send(c.digest(""))
		synctest.Wait()
		w.dial()
		w.dial()
		synctest.Wait()
		c.end.setWindow(defaultWindow)
		c.expect("\n")
		c.send(acquire("k", 0, 1, 7))
		c.expect(granted("k", 1, 7))
		w.seen.expect(t, map[CloseReason]int{ClosedDisplaced: 1})
	})
}

// A connection that was chosen to be displaced is not let in any more, even if its
// digest comes before its socket is closed.
func TestADisplacedConnectionIsNotLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := newTally()
		s := New(&scripted{}, Config{MaxConnections: 4, Observer: seen})
		end, nc := newLink()
		first, second := newConn(s, nc), newConn(s, nc)
		s.enrol(first)
		if displaced, _ := s.enrol(second); displaced != first {
			t.Fatal("the oldest stranger is not displaced")
		}
		go first.run()
		c := &client{t: t, nc: end, end: end, stream: end, patience: patience}
		c.challenge()
		c.send(c.digest(""))
		c.expectEnd()
		synctest.Wait()
		seen.expect(t, map[CloseReason]int{ClosedDisplaced: 1})
	})
}

// A connection that comes while the server stops is closed for that reason.
func TestAConnectionThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.server.StopAccepting()
		_, end := newLink()
		w.server.admit(end)
		w.seen.expect(t, map[CloseReason]int{ClosedDrain: 1})
		if !end.isClosed() {
			t.Error("it is still open")
		}
	})
}

// A listener that is handed over after the end is closed.
func TestServeAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		if err := w.server.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		ln := newMemListener()
		if err := w.server.Serve(ln); err != nil {
			t.Errorf("Serve: %v", err)
		}
		select {
		case <-ln.closed:
		case <-time.After(time.Second):
			t.Error("the listener is open")
		}
	})
}
