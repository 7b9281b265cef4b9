package server

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
)

// closings is every way in which a connection closes while a write waits for its
// client.
var closings = []struct {
	name   string
	close  func(w *world, c *client)
	after  time.Duration
	reason CloseReason
}{
	{"the client resets it", func(_ *world, c *client) { c.end.Reset() }, 0, ""},
	{"the client closes it", func(_ *world, c *client) { c.end.Close() }, 0, ""},
	{"it is too slow", func(*world, *client) {}, 5*time.Second + writeStep, ClosedSlow},
	{"a shutdown cuts it", func(w *world, _ *client) { go w.shutdown(time.Second) }, time.Second, ClosedDrain},
}

// A grant that is in no write when its connection closes is released at once, by
// its exact token. One in a write that has begun never is, whatever became of the
// write: the client may have read it (docs/PROTOCOL.md, section 3).
func TestAnUndeliveredGrantIsGivenBack(t *testing.T) {
	for _, test := range closings {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := answering()
				w := newWorldOf(t, svc, Config{})
				c := w.connect()
				synctest.Wait()
				sink := svc.sink()
				grant(sink, "delivered", 1)
				c.expect(granted("delivered", 1, 1))

				c.end.setWindow(3)
				grant(sink, "begun", 2)
				synctest.Wait()
				for token, key := range []string{3: "queued", 4: "behind it"} {
					if key != "" {
						grant(sink, key, uint64(token))
					}
				}
				sink.Deliver(service.Answer{Outcome: service.TimedOut, Key: "not granted"})
				sink.Flush()
				test.close(w, c)
				if test.after > 0 {
					time.Sleep(test.after - time.Nanosecond)
					synctest.Wait()
					svc.expectAbandoned(t)
					time.Sleep(time.Nanosecond)
				}
				synctest.Wait()
				svc.expectAbandoned(t, "queued 3", "behind it 4")
				if w.server.Connections() != 0 {
					t.Error("the connection has not ended")
				}
				if test.reason != "" {
					w.seen.expect(t, map[CloseReason]int{test.reason: 1})
				}
			})
		})
	}
}

// A grant that is decided while its connection has broken already, but was not
// closed yet, is in no write either: none begins on a broken connection.
func TestNoWriteBeginsOnABrokenConnection(t *testing.T) {
	t.Run("reading failed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			svc := answering()
			_, end := newLink()
			c := newConn(New(svc, Config{}), end)
			c.session = svc.Open(c, "")
			c.Deliver(service.Answer{Outcome: service.Granted, Key: "k", Token: 5})
			c.noteReadError(fail("read", syscall.ECONNRESET))
			c.finish()
			svc.expectAbandoned(t, "k 5")
		})
	})
	t.Run("writing failed", func(t *testing.T) {
		for range 5000 { // whoever waits for the writer comes as early as can be
			svc := answering()
			_, end := newLink()
			c := newConn(New(svc, Config{}), end)
			c.session = svc.Open(c, "")
			c.take(new([]byte)) // the ready frame
			c.writing = false
			c.Deliver(service.Answer{Outcome: service.Granted, Key: "begun", Token: 5})
			batch := make([]byte, 0, 1000)
			c.take(&batch)
			c.Deliver(service.Answer{Outcome: service.Granted, Key: "k", Token: 6})
			go c.wrote(fail("write", syscall.EPIPE))
			c.finish()
			svc.expectAbandoned(t, "k 6")
		}
	})
}
