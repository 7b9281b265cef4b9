package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ticketing-io/ticketing/core/wire"
)

// What needs real sockets: TLS and socket options.

// authority signs certificates for 127.0.0.1 and localhost.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	return a
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *authority) file(name string, data []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes a certificate and its key.
func (a *authority) issue(name string) (certFile, keyFile string) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, _ := x509.MarshalPKCS8PrivateKey(key)
	return a.file(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		a.file(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// listen accepts sessions until the test's end; each gets its ready frame, and its
// requests are granted.
func listen(t *testing.T, cfg *tls.Config) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		sessions := make(chan struct{}, 64)
		defer func() {
			for range cap(sessions) {
				sessions <- struct{}{}
			}
		}()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if cfg != nil {
				c = tls.Server(c, cfg)
			}
			sessions <- struct{}{}
			go func() { grantAll(c); <-sessions }()
		}
	}()
	return l.Addr().String()
}

func grantAll(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(wire.AppendChallenge(nil, wire.NewNonce())); err != nil {
		return
	}
	buf := make([]byte, 4096)
	if _, err := c.Read(buf); err != nil {
		return
	}
	c.Write([]byte("\n"))
	var dec wire.RequestDecoder
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		dec.Feed(buf[:n])
		for r, ok := dec.Next(); ok; r, ok = dec.Next() {
			if r.Op == wire.OpAcquire {
				c.Write(grant(r, 7).Append(nil))
			} else {
				c.Write(answer(wire.OpRelease, r).Append(nil))
			}
		}
	}
}

func TestTLSModes(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	serverCert, serverKey := ca.issue("server")
	clientCert, clientKey := ca.issue("client")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	server := &tls.Config{Certificates: []tls.Certificate{pair}}
	mutual := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: tls.VersionTLS12}
	old := &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS11}
	caFile, otherFile := ca.file("ca.pem", ca.pem()), other.file("ca.pem", other.pem())

	tests := []struct {
		name   string
		server *tls.Config
		tls    TLS
		fails  string // empty: it works
	}{
		{"off", nil, TLS{}, ""},
		{"off, to a TLS server", server, TLS{}, "perhaps it speaks TLS"},
		{"one CA file", server, TLS{Mode: TLSCA, CAFile: caFile}, ""},
		{"one CA function", server, TLS{Mode: TLSCA, CAFunc: func() ([]byte, error) { return ca.pem(), nil }}, ""},
		{"another CA", server, TLS{Mode: TLSCA, CAFile: otherFile}, "unknown authority"},
		{"system trust store", server, TLS{Mode: TLSSystem}, "unknown authority"},
		{"another name", server, TLS{Mode: TLSCA, CAFile: caFile, ServerName: "example.com"}, "example.com"},
		{"its own name", server, TLS{Mode: TLSCA, CAFile: caFile, ServerName: "localhost"}, ""},
		{"skip verification", server, TLS{Mode: TLSInsecureSkipVerify}, ""},
		{"a client certificate", mutual, TLS{Mode: TLSCA, CAFile: caFile, CertFile: clientCert, KeyFile: clientKey}, ""},
		{"no client certificate", mutual, TLS{Mode: TLSCA, CAFile: caFile}, "handshake failure"},
		{"TLS 1.1", old, TLS{Mode: TLSCA, CAFile: caFile}, "version"},
		{"TLS to a plain server", nil, TLS{Mode: TLSCA, CAFile: caFile}, "answers without TLS"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, err := New(Config{Addrs: []string{listen(t, test.server)}, TLS: test.tls})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			limit := 10 * time.Second
			if test.fails != "" {
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			if err := b.WaitReady(ctx); test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error %v, want one that says %q", err, test.fails)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			ticket, err := b.Acquire(ctx, "k", time.Second, DefaultLease, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := ticket.Release(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTheCAIsReadAgainAtEachDial(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	certFile, keyFile := ca.issue("server")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	path := ca.file("rotating.pem", other.pem())
	b, err := New(Config{
		Addrs: []string{listen(t, &tls.Config{Certificates: []tls.Certificate{pair}})},
		TLS:   TLS{Mode: TLSCA, CAFile: path},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := b.WaitReady(ctx); err == nil {
		t.Fatal("the wrong CA was taken")
	}
	ca.file("rotating.pem", ca.pem())
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestAPeerThatIsGoneWithoutAWordIsNoticedByTheSystem(t *testing.T) {
	addr := listen(t, nil)
	c, err := dialTCP(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var timeout, alive, idle, interval, count int
	raw.Control(func(fd uintptr) {
		timeout, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		alive, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		idle, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		interval, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
		count, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	})
	if timeout != 10000 || alive == 0 || idle+interval*count != 10 {
		t.Fatalf("user timeout %d ms, keep-alive %d after %d s, %d times every %d s; want 10000 and 10 s in all", timeout, alive, idle, count, interval)
	}
}
