package server

import (
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// heapGrowth bounds how much memory, in bytes, a server may take for a thousand
// connections that make trouble, this test's own ends of them included: about
// 12 KiB each, and as much again.
const heapGrowth = 24 << 20

// troublemakers is every way to be a nuisance. Each returns when the server has had
// enough, or when done is closed.
var troublemakers = []struct {
	name   string
	count  int
	in     bool        // behind a handshake
	reason CloseReason // what becomes of all of them; "" where it depends
	make   func(c *client, done <-chan struct{})
}{
	{"garbage instead of frames", 20, true, ClosedOp, func(c *client, done <-chan struct{}) {
		flood(c.nc, strings.Repeat("\x00\xff garbage ", 1000), 10<<20)
	}},
	{"a frame of 10 MB", 5, true, ClosedLine, func(c *client, done <-chan struct{}) {
		flood(c.nc, acquire(strings.Repeat("x", 64<<10), 0, 1, 7)[:64<<10], 10<<20)
	}},
	{"half frames", 20, true, ClosedRequest, func(c *client, done <-chan struct{}) {
		flood(c.nc, acquire("k", 0, 1, 7)[:10], 10)
		untilClosed(c.nc, done)
	}},
	{"requests without end whose answers nobody reads", 5, true, ClosedSlow, func(c *client, done <-chan struct{}) {
		flood(c.nc, strings.Repeat(release("k", 0), 1000), 1<<30)
	}},
	{"as many waiters as can be", 5, true, "", func(c *client, done <-chan struct{}) {
		flood(c.nc, strings.Repeat(acquire("crowded", 255, 1, 7), 1000), 256<<10)
		untilClosed(c.nc, done)
	}},
	{"a byte a second", 20, true, "", func(c *client, done <-chan struct{}) {
		trickle(c.nc, acquire("slow", 0, 1, 7)[:8])
		untilClosed(c.nc, done)
	}},
	{"silence", 1000, false, "", func(c *client, done <-chan struct{}) { untilClosed(c.nc, done) }},
	{"garbage instead of a digest", 20, false, "", func(c *client, done <-chan struct{}) {
		flood(c.nc, strings.Repeat("\x00\xff garbage ", 1000), 10<<20)
	}},
	{"a line of 10 MB instead of a digest", 5, false, "", func(c *client, done <-chan struct{}) {
		flood(c.nc, strings.Repeat("x", 64<<10), 10<<20)
	}},
	{"wrong tokens", 20, false, "", func(c *client, done <-chan struct{}) {
		flood(c.nc, "wrong\n", len("wrong\n"))
		untilClosed(c.nc, done)
	}},
}

// flood sends data again and again, until the server takes no more of it or so much
// was sent.
func flood(nc net.Conn, data string, most int) {
	nc.SetWriteDeadline(time.Now().Add(20 * time.Second))
	piece := []byte(data)
	for sent := 0; sent < most; sent += len(piece) {
		if _, err := nc.Write(piece); err != nil {
			return
		}
	}
}

// untilClosed waits for the server's close.
func untilClosed(nc net.Conn, done <-chan struct{}) {
	for closed := false; !closed; {
		select {
		case <-done:
			return
		default:
		}
		nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := nc.Read(make([]byte, 512))
		timeout, _ := err.(net.Error)
		closed = err != nil && (timeout == nil || !timeout.Timeout())
	}
}

// Whoever makes trouble costs the server its own connections, and nobody else
// anything: a client that was there is served all the while, a new one gets in, and
// memory stays bounded.
func TestTroubleCostsNobodyElseAnything(t *testing.T) {
	// Small buffers of the system, so that who reads nothing is soon found out.
	s := newSite(t, Config{}, func(c *net.TCPConn) { c.SetWriteBuffer(64 << 10) })
	good := s.connect()
	before := heap()
	done := make(chan struct{})
	var trouble sync.WaitGroup
	for _, test := range troublemakers {
		for range test.count {
			c := s.dial()
			if test.in {
				c.authenticate("")
			}
			trouble.Go(func() {
				defer c.nc.Close()
				test.make(c, done)
			})
		}
	}
	peak, rounds, newcomers := uint64(0), 0, 0
	looked := time.Now()
	for end := looked.Add(time.Minute); time.Now().Before(end) && missing(s) != ""; rounds++ {
		token := lockOne(good, "good", rounds)
		good.send(release("good", token))
		good.expect(released("good", token))
		if time.Since(looked) > 100*time.Millisecond {
			looked = time.Now()
			peak = max(peak, heap())
			if newcomer(s) {
				newcomers++
			}
		}
		time.Sleep(time.Millisecond)
	}
	close(done)
	trouble.Wait()
	if peak > before+heapGrowth {
		t.Errorf("the heap grew by %d KiB, want %d at the most", (peak-before)>>10, heapGrowth>>10)
	}
	if newcomers == 0 {
		t.Error("no new client got in")
	}
	if what := missing(s); what != "" {
		t.Errorf("still connected: %s", what)
	}
	within(t, 10*time.Second, "only the good client is left", func() bool { return s.server.Connections() == 1 })
	within(t, 10*time.Second, "its goroutines are gone", func() bool { return runtime.NumGoroutine() < 50 })
	t.Logf("%d round trips, %d newcomers, %d KiB of heap, closed: %v", rounds, newcomers, (int(peak)-int(before))>>10, s.seen.reasons())
}

// missing names troublemakers that are still connected and should not be, if any.
func missing(s *site) string {
	closed := s.seen.reasons()
	for _, test := range troublemakers {
		if test.reason != "" && closed[test.reason] < test.count {
			return test.name
		}
	}
	return ""
}

// lockOne takes a lock and returns its token.
func lockOne(c *client, key string, owner int) uint64 {
	c.t.Helper()
	c.send(acquire(key, 0, 250, uint64(owner)))
	got := replies(c.t, c.read(len(granted(key, 0, 0))))
	if len(got) != 1 || got[0].Owner != uint64(owner) || got[0].Token == 0 {
		c.t.Fatalf("the good client got %v", got)
	}
	return got[0].Token
}

// newcomer tries once to get in, as one of many strangers, and returns whether it
// did.
func newcomer(s *site) bool {
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		return false
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(5 * time.Second))
	line := make([]byte, len("SHA-256 \n")+wire.NonceLen)
	if _, err := io.ReadFull(nc, line); err != nil {
		return false
	}
	c := &client{}
	copy(c.nonce[:], line[len("SHA-256 "):])
	nc.Write([]byte(c.digest("")))
	_, err = io.ReadFull(nc, line[:1])
	return err == nil
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
