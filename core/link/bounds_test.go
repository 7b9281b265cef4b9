package link

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stranger who says nothing, too little, or one byte a second is gone after
// HandshakeTimeout, and nothing stays counted.
func TestAStrangerHasFiveSeconds(t *testing.T) {
	t.Parallel()
	good := hi(hello{1, byte(Raft), "n1", "n2"})
	for name, talk := range map[string]func(net.Conn){
		"silence":              func(net.Conn) {},
		"reads only":           func(c net.Conn) { io.Copy(io.Discard, c) },
		"half a hello":         func(c net.Conn) { readHello(c); io.WriteString(c, good[:9]) },
		"a byte a second":      func(c net.Conn) { readHello(c); drip(c, good, time.Second) },
		"does not read answer": func(c net.Conn) { readHello(c); io.WriteString(c, good) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n2 := n.node(t, "n2")
				n2.Raft()
				c := n.stranger(t, "n2:1")
				began, done := time.Now(), make(chan struct{})
				go func() {
					defer close(done)
					talk(c)
					io.Copy(io.Discard, neverRead{c})
				}()
				time.Sleep(HandshakeTimeout - time.Millisecond)
				synctest.Wait()
				if got := counted(n2); got != 1 {
					t.Errorf("%d streams after %v", got, time.Since(began))
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if got := counted(n2); got != 0 {
					t.Errorf("%d streams after %v", got, time.Since(began))
				}
				c.Close()
				<-done
			})
		})
	}
}

// neverRead keeps a reader from reading, so that what is not read stays unread.
type neverRead struct{ net.Conn }

func (neverRead) Read([]byte) (int, error) { return 0, io.EOF }

func drip(w io.Writer, s string, pause time.Duration) {
	for i := range len(s) {
		if _, err := io.WriteString(w, s[i:i+1]); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

func counted(l *Link) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.others != len(l.open) {
		return -1
	}
	return l.others
}

// Garbage ends a stream at once: nothing behind it is read.
func TestGarbageIsNotReadOn(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"HTTP":              "GET / HTTP/1.1\r\n\r\n",
		"TLS":               "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"zeros":             strings.Repeat("\x00", 4096),
		"an oversized name": magic + "\x01\x01\xff\xff" + strings.Repeat("a", 510),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n2 := n.node(t, "n2")
				n2.Raft()
				c := n.stranger(t, "n2:1")
				readHello(c)
				began := time.Now()
				wrote, err := io.WriteString(c, said)
				if err == nil || wrote > helloHeader {
					t.Errorf("%d bytes were read, %v", wrote, err)
				}
				ended(t, c)
				if took := time.Since(began); took != 0 {
					t.Errorf("that took %v", took)
				}
			})
		})
	}
}

func TestTheOldestStrangerGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2 := n.node(t, "n1"), n.node(t, "n2")
		raft := n2.Raft()
		near := dial(t, n1, Raft, "n2:1", "n2")
		far := accept(t, raft)
		var strangers []net.Conn
		for range MaxStreams - 1 {
			strangers = append(strangers, n.stranger(t, "n2:1"))
			synctest.Wait()
		}
		dial(t, n1, Raft, "n2:1", "n2")
		accept(t, raft)
		if _, err := readHello(strangers[0]); err == nil {
			t.Error("the oldest stranger is still there")
		}
		if _, err := readHello(strangers[1]); err != nil {
			t.Errorf("another than the oldest stranger gave way: %v", err)
		}
		joined(t, near, far)
		if got := counted(n2); got != MaxStreams {
			t.Errorf("%d streams", got)
		}
	})
}

func TestAStreamOfANodeNeverGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2 := n.node(t, "n1"), n.node(t, "n2")
		raft := n2.Raft()
		var near, far []*Conn
		for range MaxStreams {
			near = append(near, dial(t, n1, Raft, "n2:1", "n2"))
			far = append(far, accept(t, raft))
		}
		refusedWith(t, n1, Raft, "n2:1", "n2", io.EOF)
		for i := range near {
			joined(t, near[i], far[i])
		}
		far[7].Close()
		near[7].Close()
		dial(t, n1, Raft, "n2:1", "n2")
	})
}

func TestOperatorsLeaveRoomForRaft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2, operator := n.node(t, "n1"), n.node(t, "n2"), n.node(t, "")
		raft := n2.Raft()
		control := n2.Control()
		var first *Conn
		for i := range MaxControl {
			dial(t, operator, Control, "n2:1", "")
			if c := accept(t, control); i == 0 {
				first = c
			}
		}
		refusedWith(t, operator, Control, "n2:1", "", ErrRefused)
		dial(t, n1, Raft, "n2:1", "n2")
		accept(t, raft)
		first.Close()
		dial(t, operator, Control, "n2:1", "")
	})
}

func TestCutEndsRaftStreamsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2 := n.node(t, "n1"), n.node(t, "n2")
		raft1, raft2, control2 := n1.Raft(), n2.Raft(), n2.Control()
		out := dial(t, n1, Raft, "n2:1", "n2")
		outFar := accept(t, raft2)
		in := dial(t, n2, Raft, "n1:1", "n1")
		inFar := accept(t, raft1)
		waiting := dial(t, n2, Raft, "n1:1", "n1") // said hello, not accepted
		control := dial(t, n1, Control, "n2:1", "n2")
		controlFar := accept(t, control2)

		n1.Cut()
		for _, c := range []net.Conn{out, outFar, in, inFar, waiting} {
			ended(t, c)
		}
		joined(t, control, controlFar)
		refusedWith(t, n1, Raft, "n2:1", "n2", ErrCut)
		refusedWith(t, n2, Raft, "n1:1", "n1", ErrRefused)
		joined(t, dial(t, n1, Control, "n2:1", "n2"), accept(t, control2))

		n1.Restore()
		joined(t, dial(t, n1, Raft, "n2:1", "n2"), accept(t, raft2))
		joined(t, dial(t, n2, Raft, "n1:1", "n1"), accept(t, raft1))
	})
}

func TestDropEndsTheStreamsWithOneNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2, n3 := n.node(t, "n1"), n.node(t, "n2"), n.node(t, "n3")
		raft1, raft2, raft3 := n1.Raft(), n2.Raft(), n3.Raft()
		out := dial(t, n1, Raft, "n2:1", "n2")
		accept(t, raft2)
		dial(t, n2, Raft, "n1:1", "n1")
		in := accept(t, raft1)
		other := dial(t, n1, Raft, "n3:1", "n3")
		otherFar := accept(t, raft3)
		n1.Drop("n2")
		ended(t, out)
		ended(t, in)
		joined(t, other, otherFar)
	})
}

func TestAKindThatNobodyServesIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2 := n.node(t, "n1"), n.node(t, "n2")
		refusedWith(t, n1, Raft, "n2:1", "n2", ErrRefused)
		raft := n2.Raft()
		near := dial(t, n1, Raft, "n2:1", "n2")
		far := accept(t, raft)
		waiting := dial(t, n1, Raft, "n2:1", "n2")

		raft.Close()
		if _, err := raft.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
		ended(t, waiting)
		joined(t, near, far)
		refusedWith(t, n1, Raft, "n2:1", "n2", ErrRefused)

		again := n2.Raft()
		raft.Close() // once more: the new one does not mind
		joined(t, dial(t, n1, Raft, "n2:1", "n2"), accept(t, again))
	})
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2 := n.node(t, "n1"), n.node(t, "n2")
		raft, control := n2.Raft(), n2.Control()
		near := dial(t, n1, Raft, "n2:1", "n2")
		far := accept(t, raft)
		stranger := n.stranger(t, "n2:1")
		accepted := make(chan error, 1)
		go func() {
			_, err := control.Accept()
			accepted <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := n2.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("close took %v", took)
		}
		for _, c := range []net.Conn{near, far, stranger} {
			ended(t, c)
		}
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		if _, err := n2.Raft().Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept of a closed link: %v", err)
		}
		refusedWith(t, n2, Raft, "n1:1", "n1", ErrClosed)
		if err := n2.Close(); err != nil {
			t.Errorf("close once more: %v", err)
		}
	})
}

// A node that can't accept for a while pauses, and is back when it can.
func TestAFailedAcceptIsTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1 := n.node(t, "n1")
		ln := n.listen("n2:1")
		raft := n.node(t, "n2").Raft()
		began := time.Now()
		for range 100 {
			ln.fails <- os.NewSyscallError("accept", errors.New("too many open files"))
		}
		if took := time.Since(began); took < 80*acceptPauseMax || took > 100*acceptPauseMax {
			t.Errorf("100 failures took %v", took)
		}
		joined(t, dial(t, n1, Raft, "n2:1", "n2"), accept(t, raft))
	})
}

func TestWithoutTLSOtherMachinesAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		addr     net.Addr
		insecure bool
		ok       bool
	}{
		{tcpAddr("127.0.0.1"), false, true},
		{tcpAddr("127.1.2.3"), false, true},
		{tcpAddr("::1"), false, true},
		{tcpAddr("::ffff:127.0.0.1"), false, true},
		{tcpAddr("10.0.0.1"), false, false},
		{tcpAddr("::"), false, false},
		{tcpAddr("fe80::1"), false, false},
		{memAddr("somewhere"), false, false},
		{tcpAddr("10.0.0.1"), true, true},
		{memAddr("somewhere"), true, true},
	} {
		t.Run(test.addr.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				secure := func(c *Config) { c.Insecure = test.insecure }
				// The listening side sees a conn from the address.
				n := newNetwork()
				dialer := n.node(t, "n1")
				ln := n.listen("n2:1")
				listening := n.node(t, "n2", secure, func(c *Config) { c.Listener = from{ln, test.addr} })
				listening.Raft()
				// The dialing side sees one to it.
				n.node(t, "n3").Raft()
				careful := n.node(t, "n4", secure, func(c *Config) { c.DialContext = dialTo(n.DialContext, test.addr) })
				if test.ok {
					dial(t, dialer, Raft, "n2:1", "n2")
					dial(t, careful, Raft, "n3:1", "n3")
				} else {
					refusedWith(t, dialer, Raft, "n2:1", "n2", ErrRefused)
					refusedWith(t, careful, Raft, "n3:1", "n3", ErrInsecure)
				}
			})
		})
	}
}
