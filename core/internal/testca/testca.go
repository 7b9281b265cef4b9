// Package testca issues the certificates of tests: of a CA of their own, right ones
// and, by changing the template, every kind of wrong one. Only tests import it.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs the certificates of one test. They are valid for an hour before and after
// its making.
type CA struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64 // serial number
}

// New makes a CA with a new key.
func New(t testing.TB) *CA {
	t.Helper()
	ca := &CA{key: newKey(t)}
	template := ca.template("test CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	ca.Cert = ca.sign(t, template, template, ca.key)
	return ca
}

// Pool returns a pool of this CA alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	return pool
}

// WriteFile writes the CA's certificate to dir/ca.pem and returns the name.
func (ca *CA) WriteFile(t testing.TB, dir string) string {
	t.Helper()
	return write(t, dir, "ca.pem", "CERTIFICATE", ca.Cert.Raw)
}

// Node issues the certificate of a cluster's node, ticketing://node/ID.
func (ca *CA) Node(t testing.TB, id string, change ...func(*x509.Certificate)) Pair {
	t.Helper()
	return ca.named(t, "ticketing://node/"+id, change)
}

// Operator issues the certificate of a cluster's operator, ticketing://operator/NAME.
func (ca *CA) Operator(t testing.TB, name string, change ...func(*x509.Certificate)) Pair {
	t.Helper()
	return ca.named(t, "ticketing://operator/"+name, change)
}

func (ca *CA) named(t testing.TB, uri string, change []func(*x509.Certificate)) Pair {
	t.Helper()
	return ca.Issue(t, func(c *x509.Certificate) {
		c.URIs = []*url.URL{URI(t, uri)}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		for _, f := range change {
			f(c)
		}
	})
}

// Server issues the certificate of a server for clients, at localhost and 127.0.0.1.
func (ca *CA) Server(t testing.TB) Pair {
	t.Helper()
	return ca.Issue(t, func(c *x509.Certificate) {
		c.DNSNames, c.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
}

// Client issues the certificate of a client.
func (ca *CA) Client(t testing.TB) Pair {
	t.Helper()
	return ca.Issue(t, func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

// Issue signs what change makes of a template that names nobody.
func (ca *CA) Issue(t testing.TB, change func(*x509.Certificate)) Pair {
	t.Helper()
	key, template := newKey(t), ca.template("test")
	change(template)
	return Pair{ca.sign(t, template, ca.Cert, key), key}
}

func (ca *CA) template(name string) *x509.Certificate {
	ca.next++
	return &x509.Certificate{
		SerialNumber: big.NewInt(ca.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func (ca *CA) sign(t testing.TB, template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// Pair is a certificate with its private key.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// TLS returns the pair as package tls takes it.
func (p Pair) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key, Leaf: p.Cert}
}

// WriteFiles writes dir/cert.pem and dir/key.pem and returns their names.
func (p Pair) WriteFiles(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "cert.pem", "CERTIFICATE", p.Cert.Raw), write(t, dir, "key.pem", "PRIVATE KEY", der)
}

// URI parses a URI that a test knows to be good.
func URI(t testing.TB, uri string) *url.URL {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, dir, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
