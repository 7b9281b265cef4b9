package link

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStreamsJoinNodesByKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2, operator := n.node(t, "n1"), n.node(t, "n2"), n.node(t, "")
		raft, control := n2.Raft(), n2.Control()

		near := dial(t, n1, Raft, "n2:1", "n2")
		far := accept(t, raft)
		joined(t, near, far)
		joined(t, far, near)
		if near.Peer() != (Identity{ID: "n2"}) || far.Peer() != (Identity{ID: "n1"}) {
			t.Errorf("the peers are %v and %v", near.Peer(), far.Peer())
		}

		near = dial(t, n1, Control, "n2:1", "")
		far = accept(t, control)
		joined(t, near, far)
		if near.Peer() != (Identity{ID: "n2"}) || far.Peer() != (Identity{ID: "n1"}) {
			t.Errorf("the peers are %v and %v", near.Peer(), far.Peer())
		}

		near = dial(t, operator, Control, "n2:1", "")
		far = accept(t, control)
		joined(t, near, far)
		if far.Peer() != (Identity{Operator: true}) {
			t.Errorf("the operator is taken for %v", far.Peer())
		}
	})
}

func TestAStreamHasDeadlinesAndNoneIsLeftOfTheHello(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, n2 := n.node(t, "n1"), n.node(t, "n2")
		raft := n2.Raft()
		near := dial(t, n1, Raft, "n2:1", "n2")
		far := accept(t, raft)
		time.Sleep(time.Hour)
		joined(t, near, far)
		for _, c := range []net.Conn{near, far} {
			c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a read past its deadline: %v", err)
			}
		}
	})
}

func TestWhoMayHaveWhichStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n1, operator := n.node(t, "n1"), n.node(t, "")
		removed := func(c *Config) { c.Refuse = func(id string) bool { return id == "gone" } }
		n2, gone := n.node(t, "n2", removed), n.node(t, "gone")
		n2.Raft()
		n2.Control()
		for _, kind := range []Kind{Raft, Control} {
			refusedWith(t, gone, kind, "n2:1", "n2", ErrRemoved)
			refusedWith(t, n1, kind, "n2:1", "n3", ErrWrongNode)
		}
		refusedWith(t, gone, Control, "n2:1", "", ErrRemoved)
		if _, err := n1.Dial(context.Background(), Raft, "n2:1", ""); err == nil {
			t.Error("a raft stream to no node in particular")
		}
		if _, err := operator.Dial(context.Background(), Raft, "n2:1", "n2"); err == nil {
			t.Error("an operator has a raft stream")
		}
		if _, err := n1.Dial(context.Background(), Raft, "n4:1", "n4"); err == nil {
			t.Error("a stream to nowhere")
		}
	})
}

// Whatever a stranger says, a node answers by the rules, whatever the dialing side's
// own checks would have stopped.
func TestAListenerJudgesForItself(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		said hello
		want answer
	}{
		"a node":                  {hello{1, byte(Raft), "n1", "n2"}, answerOK},
		"an operator":             {hello{1, byte(Control), "", ""}, answerOK},
		"an operator for raft":    {hello{1, byte(Raft), "", "n2"}, answerRefused},
		"raft to whomever":        {hello{1, byte(Raft), "n1", ""}, answerRefused},
		"raft to somebody else":   {hello{1, byte(Raft), "n1", "n3"}, answerWrongNode},
		"an unknown kind":         {hello{1, 3, "n1", "n2"}, answerRefused},
		"no kind":                 {hello{1, 0, "n1", "n2"}, answerRefused},
		"a removed node":          {hello{1, byte(Raft), "gone", "n2"}, answerRemoved},
		"a version from before":   {hello{0, byte(Raft), "n1", "n2"}, answerVersion},
		"a version from tomorrow": {hello{2, byte(Raft), "n1", "n2"}, answerVersion},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n2 := n.node(t, "n2", func(c *Config) { c.Refuse = func(id string) bool { return id == "gone" } })
				n2.Raft()
				n2.Control()
				c := n.stranger(t, "n2:1")
				if greeting, err := readHello(c); err != nil || greeting != (hello{version: version, id: "n2"}) {
					t.Fatalf("greeting %+v, %v", greeting, err)
				}
				if _, err := c.Write(appendHello(nil, test.said)); err != nil {
					t.Fatal(err)
				}
				got, err := readHello(c)
				if err != nil || answer(got.code) != test.want {
					t.Errorf("answer %+v, %v", got, err)
				}
				if test.want != answerOK {
					ended(t, c)
				}
			})
		})
	}
}

// What a dialing side makes of what it hears.
func TestADialerJudgesForItself(t *testing.T) {
	t.Parallel()
	ok := hello{version: 1, id: "n2"}
	for name, test := range map[string]struct {
		greeting, answer string
		want             error
	}{
		"refused at once":            {hi(hello{version: 1, code: byte(answerRefused)}), "", ErrRefused},
		"removed":                    {hi(ok), hi(hello{version: 1, code: byte(answerRemoved), id: "n2"}), ErrRemoved},
		"wrong node, says the other": {hi(ok), hi(hello{version: 1, code: byte(answerWrongNode)}), ErrWrongNode},
		"wrong node, by its name":    {hi(hello{version: 1, id: "n3"}), "", ErrWrongNode},
		"version":                    {hi(ok), hi(hello{version: 1, code: byte(answerVersion)}), ErrVersion},
		"an older version":           {hi(hello{version: 0, id: "n2"}), "", ErrVersion},
		"an answer of later":         {hi(ok), hi(hello{version: 7, code: 99}), ErrRefused},
		"nameless":                   {hi(hello{version: 1}), "", ErrUntrusted},
		"another protocol":           {"220 mail.example.org ESMTP\r\n", "", ErrUntrusted},
		"silence":                    {"", "", os.ErrDeadlineExceeded},
		"silence behind the hello":   {hi(ok), "", os.ErrDeadlineExceeded},
		"half a hello":               {hi(ok)[:6], "", os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				ln := n.listen("n2:1")
				n1 := n.node(t, "n1")
				go func() {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					io.WriteString(c, test.greeting)
					readHello(c)
					io.WriteString(c, test.answer)
					io.Copy(io.Discard, c)
				}()
				began := time.Now()
				refusedWith(t, n1, Raft, "n2:1", "n2", test.want)
				if took := time.Since(began); took > HandshakeTimeout {
					t.Errorf("the dial took %v", took)
				}
				n1.Close()
				if len(n1.open) != 0 {
					t.Errorf("%d streams are counted after all were closed", len(n1.open))
				}
			})
		})
	}
}

func hi(h hello) string { return string(appendHello(nil, h)) }

// A newer node offers its version, and takes the older that a node knows.
func TestANewerNodeSpeaksTheOlderVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		ln := n.listen("n2:1")
		n1 := n.node(t, "n1")
		spoken := make(chan hello, 1)
		go func() {
			c, _ := ln.Accept()
			c.Write(appendHello(nil, hello{version: version + 1, id: "n2"}))
			h, _ := readHello(c)
			spoken <- h
			c.Write(appendHello(nil, hello{version: version + 1, id: "n2"}))
		}()
		dial(t, n1, Raft, "n2:1", "n2")
		if h := <-spoken; h.version != version {
			t.Errorf("spoke version %d", h.version)
		}
	})
}

func TestADialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(cancel context.CancelFunc, l *Link)
		want error
	}{
		"cancelled": {func(cancel context.CancelFunc, _ *Link) { cancel() }, context.Canceled},
		"cut":       {func(_ context.CancelFunc, l *Link) { l.Cut() }, ErrCut},
		"closed":    {func(_ context.CancelFunc, l *Link) { l.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				ln := n.listen("n2:1")
				defer ln.Close()
				n1 := n.node(t, "n1")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				failed := make(chan error, 1)
				go func() {
					_, err := n1.Dial(ctx, Raft, "n2:1", "n2")
					failed <- err
				}()
				silent, _ := ln.Accept()
				synctest.Wait()
				test.end(cancel, n1)
				if err := <-failed; !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				ended(t, silent)
			})
		})
	}
}

func TestAddressesAreHostAndPort(t *testing.T) {
	t.Parallel()
	n1 := start(t, Config{NodeID: "n1", DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		return nil, errors.New("dialed " + addr)
	}})
	for _, addr := range []string{"node-2.example.org:5226", "[::1]:5226", "[fe80::1%eth0]:5226", "10.0.0.2:5226"} {
		if _, err := n1.Dial(context.Background(), Raft, addr, "n2"); err == nil || !strings.Contains(err.Error(), "dialed "+addr) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"", "n2", "::1:5226"} {
		if _, err := n1.Dial(context.Background(), Raft, addr, "n2"); err == nil || strings.Contains(err.Error(), "dialed") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
