package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"math/big"
	"testing"
	"testing/synctest"
	"time"
)

// testName is the name in the certificate of testTLS.
const testName = "ticketing.test"

// testTLS returns a server's configuration and that of a client who trusts it. The
// certificate is valid in fake time, which begins in the year 2000.
func testTLS(t *testing.T) (server, trusting *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: testName},
		DNSNames:     []string{testName},
		NotBefore:    time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	server = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return server, &tls.Config{RootCAs: pool, ServerName: testName}
}

// negotiate negotiates TLS on a connection.
func (c *client) negotiate(cfg *tls.Config) *client {
	c.t.Helper()
	t := tls.Client(c.nc, cfg)
	if err := t.Handshake(); err != nil {
		c.t.Errorf("TLS: %v", err)
	}
	c.stream = t
	return c
}

// hello returns the first flight of a TLS client.
func hello(cfg *tls.Config) []byte {
	a, b := newLink()
	b.SetReadDeadline(time.Now().Add(time.Millisecond))
	a.SetReadDeadline(time.Now().Add(time.Millisecond))
	tls.Client(a, cfg).Handshake()
	return b.unread()
}

// The end over TLS is a close_notify, by which a client tells it from one that
// somebody in between has made up.
func TestTheEndOverTLSIsACloseNotify(t *testing.T) {
	server, trusting := testTLS(t)
	trusting.MaxVersion = tls.VersionTLS12 // whose alerts can be told from outside
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{TLS: server})
		c := w.dialTLS(trusting)
		c.authenticate("")
		c.send("Z")
		c.expect("Ebad_op\n")
		c.expectEnd()
		const alert, header = 21, 5
		last := byte(0)
		for data := c.end.peer.allOffered(); len(data) >= header; {
			last = data[0]
			data = data[header+int(binary.BigEndian.Uint16(data[3:])):]
		}
		if last != alert {
			t.Errorf("the server's last record is of type %d, want an alert", last)
		}
	})
}

// plainAndTLS runs a test in fake time on plain connections, and again over TLS.
// connect returns a client that is authenticated.
func plainAndTLS(t *testing.T, test func(t *testing.T, w *world, connect func() *client)) {
	server, trusting := testTLS(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		test(t, w, func() *client { return w.connect() })
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{TLS: server})
		test(t, w, func() *client {
			c := w.dialTLS(trusting)
			c.authenticate("")
			return c
		})
	})
}
