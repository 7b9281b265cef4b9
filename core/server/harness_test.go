package server

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"maps"
	"net"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every read of a test's client, in fake time: longer than any
// time of the protocol, so that a hang is a failure with a line.
const patience = 10 * time.Minute

// world is a server in a synctest bubble, on connections in memory.
type world struct {
	t       *testing.T
	server  *Server
	service *service.Service // the real one; nil when the test brings its own
	ln      *memListener
	seen    *tally
	served  chan error // what Serve returned
	start   time.Time
}

// newWorld starts a server over the real service. When the test ends it is shut
// down; then every connection must have ended with one reason.
func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	svc := service.New(local.New(1), service.Config{Limits: service.DefaultLimits()})
	t.Cleanup(svc.Close)
	w := newWorldOf(t, svc, cfg)
	w.service = svc
	return w
}

// newWorldOf starts a server over the given service.
func newWorldOf(t *testing.T, svc Service, cfg Config) *world {
	t.Helper()
	w := &world{t: t, ln: newMemListener(), seen: newTally(), served: make(chan error, 1), start: time.Now()}
	cfg.Observer = w.seen
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = wire.DefaultConnections
	}
	w.server = New(svc, cfg)
	go func() { w.served <- w.server.Serve(w.ln) }()
	t.Cleanup(func() {
		w.shutdown(time.Minute)
		if err := <-w.served; err != nil {
			t.Errorf("Serve returned %v after Shutdown", err)
		}
		w.seen.checkAllClosed(t)
		if st := w.server.Stats(); st.Connections != 0 || st.Pending != 0 {
			t.Errorf("after the end of everything: %+v", st)
		}
	})
	return w
}

// shutdown shuts the server down in so much time, at most.
func (w *world) shutdown(most time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	return w.server.Shutdown(ctx)
}

// now returns how much time has passed.
func (w *world) now() time.Duration { return time.Since(w.start) }

// tally is an Observer that counts.
type tally struct {
	mu     sync.Mutex
	opened int
	closed map[CloseReason]int
	failed []error
}

func newTally() *tally { return &tally{closed: make(map[CloseReason]int)} }

func (o *tally) ConnectionOpened() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened++
}

func (o *tally) ConnectionClosed(reason CloseReason, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed[reason]++
}

func (o *tally) AcceptFailed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, err)
}

func (o *tally) reasons() map[CloseReason]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.closed)
}

// expect fails the test unless exactly these connections have closed, once the
// bubble has settled.
func (o *tally) expect(t *testing.T, want map[CloseReason]int) {
	t.Helper()
	synctest.Wait()
	if got := o.reasons(); !maps.Equal(got, want) {
		t.Errorf("connections closed: %v, want %v", got, want)
	}
}

// checkAllClosed fails the test unless every connection that was opened has ended
// once, each with a reason of the closed set.
func (o *tally) checkAllClosed(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	known := CloseReasons()
	total := 0
	for reason, n := range o.closed {
		total += n
		if !slices.Contains(known, reason) {
			t.Errorf("%d connections closed for %q, which CloseReasons lacks", n, reason)
		}
	}
	if total != o.opened {
		t.Errorf("%d connections opened, %d closed: %v", o.opened, total, o.closed)
	}
}

// client is one client of a test.
type client struct {
	t        *testing.T
	nc       net.Conn
	end      *memConn // nc, where it is in memory
	stream   net.Conn // nc, or TLS over it
	patience time.Duration
	nonce    wire.Nonce
}

// dial connects and does nothing more.
func (w *world) dial() *client {
	w.t.Helper()
	end, server := newLink()
	select {
	case w.ln.arrivals <- server:
	case <-w.ln.closed:
		w.t.Fatal("the listener is closed")
	}
	return &client{t: w.t, nc: end, end: end, stream: end, patience: patience}
}

// dialTLS connects and negotiates TLS.
func (w *world) dialTLS(cfg *tls.Config) *client {
	w.t.Helper()
	return w.dial().negotiate(cfg)
}

// connect connects and authenticates with the empty token.
func (w *world) connect() *client {
	w.t.Helper()
	c := w.dial()
	c.authenticate("")
	return c
}

// authenticate does the handshake, to the ready frame.
func (c *client) authenticate(token string) {
	c.t.Helper()
	c.challenge()
	c.send(c.digest(token))
	c.expect("\n")
}

// challenge reads the server's challenge.
func (c *client) challenge() {
	c.t.Helper()
	line := c.read(len("SHA-256 ") + wire.NonceLen + 1)
	nonce, err := wire.ParseChallenge(line[:len(line)-1])
	if err != nil || line[len(line)-1] != '\n' {
		c.t.Fatalf("the server began with %q", line)
	}
	c.nonce = nonce
}

// digest returns the line that answers the challenge.
func (c *client) digest(token string) string {
	d := wire.Digest([]byte(token), c.nonce)
	return string(d[:]) + "\n"
}

// send sends all of it in one write.
func (c *client) send(data string) {
	c.t.Helper()
	c.nc.SetWriteDeadline(time.Now().Add(c.patience))
	if _, err := c.stream.Write([]byte(data)); err != nil {
		c.t.Fatalf("the client could not send: %v", err)
	}
}

// read reads exactly n bytes.
func (c *client) read(n int) []byte {
	c.t.Helper()
	buf := make([]byte, n)
	c.nc.SetReadDeadline(time.Now().Add(c.patience))
	if n, err := io.ReadFull(c.stream, buf); err != nil {
		c.t.Fatalf("the client got %q and then %v", buf[:n], err)
	}
	return buf
}

// expect reads as many bytes as want has, which must be these.
func (c *client) expect(want string) {
	c.t.Helper()
	if got := c.read(len(want)); string(got) != want {
		c.t.Fatalf("the client got %q, want %q", got, want)
	}
}

// expectEnd fails the test unless the server's next word is that it says no more.
func (c *client) expectEnd() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(c.patience))
	if got, err := io.ReadAll(c.stream); err != nil || len(got) > 0 {
		c.t.Fatalf("the client got %q and then %v, want the end", got, err)
	}
}

// expectNothing fails the test unless nothing has come.
func (c *client) expectNothing() {
	c.t.Helper()
	if got := c.end.unread(); len(got) > 0 {
		c.t.Fatalf("the client got %q, want nothing", got)
	}
}

// finish says that the client sends no more.
func (c *client) finish() { c.end.CloseWrite() }

// Frames, as the protocol's tables have them.

func acquire(key string, wait, lease byte, owner uint64) string {
	return string(wire.Request{Op: wire.OpAcquire, Key: key, Wait: wait, Lease: lease, Owner: owner}.Append(nil))
}

func release(key string, token uint64) string {
	return string(wire.Request{Op: wire.OpRelease, Key: key, Token: token}.Append(nil))
}

func granted(key string, token, owner uint64) string {
	return string(wire.Reply{Op: wire.OpAcquire, Text: key, Token: token, Owner: owner}.Append(nil))
}

func timedOut(key string, owner uint64) string {
	return string(wire.Reply{Op: wire.OpTimeout, Text: key, Owner: owner}.Append(nil))
}

func busy(key string, owner uint64) string {
	return string(wire.Reply{Op: wire.OpBusy, Text: key, Owner: owner}.Append(nil))
}

func released(key string, token uint64) string {
	return string(wire.Reply{Op: wire.OpRelease, Text: key, Token: token}.Append(nil))
}

func notCurrent(key string, token uint64) string {
	return string(wire.Reply{Op: wire.OpNotCurrent, Text: key, Token: token}.Append(nil))
}

// replies decodes frames, dropping what has not ended.
func replies(t *testing.T, data []byte) (all []wire.Reply) {
	t.Helper()
	var d wire.ReplyDecoder
	d.Feed(data)
	for r, ok := d.Next(); ok; r, ok = d.Next() {
		all = append(all, r)
	}
	if err := d.Err(); err != nil {
		t.Fatalf("the server sent %q: %v", data, err)
	}
	return all
}

// debugLog returns a logger of everything that goes into out.
func debugLog(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// goroutinesStartedBy returns how many goroutines began while f ran.
func goroutinesStartedBy(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}
