package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Calls and their inputs: docs/CLIENT.md, section 1.

func TestConnectFailsOnlyOnABadConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noPEM := file("no.pem", "hello")
	missing := filepath.Join(dir, "missing")
	tests := []struct {
		name string
		cfg  Config
		says string
	}{
		{"no address", Config{}, "no address"},
		{"an empty address", Config{Addrs: []string{""}}, "is empty"},
		{"a space in an address", Config{Addrs: []string{"a b:1"}}, "space"},
		{"no host", Config{Addrs: []string{":5225"}}, "no host"},
		{"a port that is no number", Config{Addrs: []string{"a:http"}}, `"http"`},
		{"port 0", Config{Addrs: []string{"a:0"}}, "1 to 65535"},
		{"port 65536", Config{Addrs: []string{"a:65536"}}, "1 to 65535"},
		{"an address twice", Config{Addrs: []string{"a", "a:5225"}}, "twice"},
		{"too many addresses", Config{Addrs: manyAddrs(maxNodes + 1)}, "at most 32"},
		{"too few pending", Config{Addrs: []string{"a"}, MaxPending: -1}, "MaxPending"},
		{"too many pending", Config{Addrs: []string{"a"}, MaxPending: 16385}, "1 to 16384"},
		{"one session", Config{Addrs: []string{"a"}, MaxSessions: 1}, "MaxSessions"},
		{"too many sessions", Config{Addrs: []string{"a"}, MaxSessions: 65}, "2 to 64"},
		{"a negative grace", Config{Addrs: []string{"a"}, ReplyGrace: new(-time.Second)}, "ReplyGrace"},
		{"two tokens", Config{Addrs: []string{"a"}, Token: "x", TokenFile: noPEM}, "more than one of Token"},
		{"a token file that is not there", Config{Addrs: []string{"a"}, TokenFile: missing}, "no such file"},
		{"a CA file that is not there", Config{Addrs: []string{"a"}, TLS: TLS{Mode: TLSCA, CAFile: missing}}, "no such file"},
		{"a CA file without a certificate", Config{Addrs: []string{"a"}, TLS: TLS{Mode: TLSCA, CAFile: noPEM}}, "no certificate"},
		{"no CA", Config{Addrs: []string{"a"}, TLS: TLS{Mode: TLSCA}}, "needs CAFile"},
		{"a CA without its mode", Config{Addrs: []string{"a"}, TLS: TLS{CAFile: noPEM}}, "TLSCA only"},
		{"two CAs", Config{Addrs: []string{"a"}, TLS: TLS{Mode: TLSCA, CAFile: noPEM, CAFunc: func() ([]byte, error) { return nil, nil }}}, "both"},
		{"an unknown mode", Config{Addrs: []string{"a"}, TLS: TLS{Mode: 9}}, "mode 9"},
		{"half a client certificate", Config{Addrs: []string{"a"}, TLS: TLS{Mode: TLSSystem, CertFile: noPEM}}, "go together"},
		{"a bad client certificate", Config{Addrs: []string{"a"}, TLS: TLS{Mode: TLSSystem, CertFile: noPEM, KeyFile: noPEM}}, "client certificate"},
		{"a certificate without TLS", Config{Addrs: []string{"a"}, TLS: TLS{CertFile: noPEM, KeyFile: noPEM}}, "TLS is off"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.cfg)
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("error %v, want a bad configuration", err)
			}
			wantText(t, err, test.says)
		})
	}
	// Whatever else is wrong with the world, it does not fail.
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Addrs: []string{"nowhere"}, Dial: (&lab{}).dial, TokenFunc: func() ([]byte, error) { return nil, errors.New("no token") }})
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
	})
}

func manyAddrs(n int) (addrs []string) {
	for i := range n {
		addrs = append(addrs, fmt.Sprintf("node-%d", i))
	}
	return addrs
}

func TestEveryFaultOfAConfigurationIsToldAtOnce(t *testing.T) {
	_, err := New(Config{Addrs: []string{":1", "a:x"}, MaxPending: -1, MaxSessions: 1, TLS: TLS{Mode: TLSCA}})
	wantText(t, err, `":1"`, `"a:x"`, "MaxPending", "MaxSessions", "CAFile")
}

func TestAnAddressKeepsItsSpellingAndGetsTheDefaultPort(t *testing.T) {
	for addr, want := range map[string]string{
		"a":              "a:5225",
		"A.example.com":  "A.example.com:5225",
		"a:7":            "a:7",
		"10.0.0.1":       "10.0.0.1:5225",
		"::1":            "[::1]:5225",
		"[::1]:99":       "[::1]:99",
		"fe80::1%eth0":   "[fe80::1%eth0]:5225",
		"host.local.:80": "host.local.:80",
	} {
		if got, err := parseAddress(addr); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", addr, got, err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, addr := range []string{"", "a", "a:1", "::1", "[::1]:1", ":1", "a:0", "a b:1", "é:1", "a:1:2", "[a]:1", "[::1", "\xff:1"} {
		f.Add(addr)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		full, err := parseAddress(addr)
		if err != nil {
			return
		}
		if len(full) > wire.MaxAddr || strings.ContainsAny(full, " \n\r\t") {
			t.Fatalf("%q became %q, which no L can carry", addr, full)
		}
		again, err := parseAddress(full)
		if err != nil || again != full {
			t.Fatalf("%q became %q and that %q, %v", addr, full, again, err)
		}
	})
}

// Input.

func TestInputIsCheckedBeforeAnythingIsSentAndNothingIsClamped(t *testing.T) {
	s := time.Second
	tests := []struct {
		name                 string
		key                  string
		wait, lease, minWork time.Duration
		want                 string
	}{
		{"a negative wait", "k", -1, s, 0, "unsupported duration"},
		{"a wait above 255 s", "k", 255*s + 1, s, 0, "unsupported duration"},
		{"the longest duration as wait", "k", 1<<63 - 1, s, 0, "unsupported duration"},
		{"a lease of 0", "k", s, 0, 0, "unsupported duration"},
		{"a negative lease", "k", s, -s, 0, "unsupported duration"},
		{"a lease above 250 s", "k", s, 250*s + 1, 0, "unsupported duration"},
		{"a negative budget", "k", s, s, -1, "unsupported duration"},
		{"a budget above 250 s", "k", s, 250 * s, 250*s + 1, "unsupported duration"},
		{"a budget above the lease", "k", s, 5 * s, 6 * s, "insufficient lease"},
		{"a budget, rounded, above the rounded lease", "k", s, 5 * s, 5*s + 1, "insufficient lease"},
		{"an empty key", "", s, s, 0, "invalid key"},
		{"a key of 129 bytes", strings.Repeat("k", 129), s, s, 0, "invalid key"},
		{"a space", "a b", s, s, 0, "invalid key"},
		{"a newline", "a\nb", s, s, 0, "invalid key"},
		{"a carriage return", "a\rb", s, s, 0, "invalid key"},
		{"no UTF-8", "a\xffb", s, s, 0, "invalid key"},
	}
	inLab(t, func(l *lab) {
		b, _, kept, block := l.open()
		for _, test := range tests {
			_, err := b.Acquire(l.Context(), test.key, test.wait, test.lease, test.minWork)
			if got := kindsOf(err); fmt.Sprint(got) != "["+test.want+"]" {
				l.Errorf("%s: %v (%v), want %s", test.name, got, err, test.want)
			}
			if test.want == "invalid key" {
				wantKinds(l, b.Release(l.Context(), test.key, 7), "invalid key")
			}
		}
		kept.quiet()
		block.quiet()
	})
}

func TestSubSecondTimesRoundUp(t *testing.T) {
	s, ms := time.Second, time.Millisecond
	tests := []struct {
		wait, lease, minWork time.Duration
		wantWait, wantLease  uint8
	}{
		{1, 1, 0, 1, 1},
		{s, s, s, 1, 1},
		{s + 1, 2*s - 1, 0, 2, 2},
		{1500 * ms, 2500 * ms, 2600 * ms, 2, 3}, // the budget rounds up as well
		{255 * s, 250 * s, 250 * s, 255, 250},
		{254*s + ms, 249*s + ms, 0, 255, 250},
	}
	inLab(t, func(l *lab) {
		b, _, _, block := l.open()
		for _, test := range tests {
			a := l.acquireFor(b, "k\t\x01é", test.wait, test.lease, test.minWork)
			if r := block.acquire("k\t\x01é"); r.Wait != test.wantWait || r.Lease != test.wantLease {
				l.Errorf("wait %s, lease %s went out as %d and %d", test.wait, test.lease, r.Wait, r.Lease)
			}
			a.pending()
		}
	})
}

// Wait ready.

func TestWaitReadyReturnsOnceASessionCanServe(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker()
		ready := l.begin(func(ctx context.Context, a *attempt) { a.err = b.WaitReady(ctx) })
		p := n.accept()
		l.sleep(time.Second)
		p.challenge("")
		ready.pending()
		p.send(single)
		wantKinds(l, ready.wait().err)
		wantKinds(l, b.WaitReady(l.Context()))
	})
}

func TestWaitReadySaysWhyNoSessionCanServe(t *testing.T) {
	tests := []struct {
		name string
		node func(n *fakeNode)
		want string
	}{
		{"refused connection", func(n *fakeNode) { n.refuse = true }, "connection refused"},
		{"hanging dial", func(n *fakeNode) { n.hang = true }, "is being dialled"},
		{"not the leader", func(n *fakeNode) { n.auto = simple(names("elsewhere:1")) }, "not the leader"},
		{"no leader known", func(n *fakeNode) {
			n.auto = func(p *peer) {
				p.challengeAny()
				p.send(wire.Reply{Op: wire.OpError, Text: "no_leader"})
				p.c.Close()
			}
		}, "no_leader"},
		{"no ticketing server", func(n *fakeNode) { n.auto = func(p *peer) { p.raw("220 mail ESMTP\n") } }, "not a challenge"},
		{"hangs up", func(n *fakeNode) { n.auto = func(p *peer) { p.c.Close() } }, "EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				test.node(l.node(here))
				b := l.broker()
				ctx, cancel := context.WithTimeout(l.Context(), 1500*time.Millisecond)
				defer cancel()
				err := b.WaitReady(ctx)
				wantKinds(l, err, "not connected", "context deadline")
				wantText(l, err, here, test.want, "1.5s")
			})
		})
	}
}

// A connection that was made is not "being dialled": what did not come says what is
// wrong with the server or with the configuration.
func TestWhatAConnectedServerHasNotSaidIsTold(t *testing.T) {
	silent := func(*peer) {}
	plain := func(p *peer) { p.challengeAny() }
	hangsUp := func(p *peer) { p.c.Close() }
	tests := []struct {
		name   string
		tls    TLSMode
		server func(*peer)
		want   []string
	}{
		{"a TLS server, dialled without TLS", TLSOff, silent, []string{"no challenge came", "perhaps it speaks TLS"}},
		{"a server that hangs up", TLSOff, hangsUp, []string{"closed the connection before its challenge", "perhaps it speaks TLS"}},
		{"a plain server, dialled with TLS", TLSInsecureSkipVerify, plain, []string{"TLS", "answers without TLS", "set to use TLS"}},
		{"a silent server, dialled with TLS", TLSInsecureSkipVerify, silent, []string{"the TLS handshake is not answered"}},
		{"a node that knows no leader", TLSOff, plain, []string{"has not said that it serves"}},
	}
	for _, test := range tests {
		for _, wait := range []time.Duration{time.Second, 15 * time.Second, 65 * time.Second} { // before a handshake is given up, after it, after a ready frame is
			t.Run(fmt.Sprint(test.name, wait), func(t *testing.T) {
				inLab(t, func(l *lab) {
					l.node(here).auto = test.server
					b := l.broker(func(c *Config) { c.TLS.Mode = test.tls })
					ready := l.begin(func(ctx context.Context, a *attempt) {
						ctx, cancel := context.WithTimeout(ctx, wait)
						defer cancel()
						a.err = b.WaitReady(ctx)
					})
					a := l.acquire(b, "k", wait)
					a.fails("timeout", "not connected")
					wantText(l, a.err, append(test.want, here)...)
					ready.fails("not connected", "context deadline")
					wantText(l, ready.err, append(test.want, here)...)
					if strings.Contains(fmt.Sprint(a.err, ready.err), "dialled") {
						l.Fatalf("errors %q, %q", a.err, ready.err)
					}
				})
			})
		}
	}
}

func TestAReasonIsToldBeforeWhatMayYetCome(t *testing.T) {
	for silent := range baseSessions {
		inLab(t, func(l *lab) {
			n := l.node(here)
			b := l.broker()
			all := []*peer{n.accept(), n.accept()}
			for i, p := range all {
				if i != silent {
					p.raw("220 mail ESMTP\n")
				}
			}
			ctx, cancel := context.WithTimeout(l.Context(), 50*time.Millisecond)
			defer cancel()
			wantText(l, b.WaitReady(ctx), "not a challenge")
		})
	}
}

func TestWaitReadyOfAClosedBroker(t *testing.T) {
	inLab(t, func(l *lab) {
		b := l.broker()
		ready := l.begin(func(ctx context.Context, a *attempt) { a.err = b.WaitReady(ctx) })
		b.Close()
		ready.fails("closed")
		wantKinds(l, b.WaitReady(l.Context()), "closed")
	})
}

// Tokens.

func TestTheTokenIsReadAgainAtEachDial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(token string) { os.WriteFile(path, []byte(token), 0o600) }
	calls := 0
	sources := map[string]func(c *Config){
		"file": func(c *Config) { c.TokenFile = path },
		"function": func(c *Config) {
			c.TokenFunc = func() ([]byte, error) {
				calls++
				token, err := os.ReadFile(path)
				return []byte(strings.TrimSpace(string(token))), err
			}
		},
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				write("first\n")
				n := l.node(here)
				l.broker(source)
				p := n.accept()
				p.challenge("first")
				other := n.accept()
				other.challenge("first")
				write("second\r\n")
				p.c.Close()
				n.accept().challenge("second")
			})
		})
	}
	inLab(t, func(l *lab) {
		n := l.node(here)
		l.broker(func(c *Config) { c.Token = "123" })
		n.accept().challenge("123")
	})
}

func TestATokenThatCantBeReadIsWhyThereIsNoSession(t *testing.T) {
	inLab(t, func(l *lab) {
		n := l.node(here)
		n.auto = simple(single)
		b := l.broker(func(c *Config) { c.TokenFunc = func() ([]byte, error) { return nil, errors.New("vault sealed") } })
		ctx, cancel := context.WithTimeout(l.Context(), time.Second)
		defer cancel()
		wantText(l, b.WaitReady(ctx), "vault sealed")
	})
}
