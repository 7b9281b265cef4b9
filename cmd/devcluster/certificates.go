package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"time"
)

// validity is how long a certificate lasts. All are made anew at each start.
const validity = 30 * 24 * time.Hour

// clockSlack is how far before now a certificate begins, for clocks that differ.
const clockSlack = time.Hour

// authority signs the cluster's certificates. Its key is kept nowhere.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// issue writes the cluster's own CA, a certificate of it for each node, and one for
// an operator. The URI in a certificate is what the cluster goes by; the name and
// the address of loopback are for who looks at hosts.
func (f folder) issue() error {
	ca, err := newAuthority(f.ca())
	if err != nil {
		return err
	}
	for _, name := range names {
		n := f.node(name)
		if err := ca.sign("ticketing://node/"+name, n.cert, n.key); err != nil {
			return err
		}
	}
	return ca.sign("ticketing://operator/dev", f.operatorCert(), f.operatorKey())
}

func newAuthority(certFile string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template("devcluster CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, writePEM(certFile, "CERTIFICATE", der)
}

// sign writes a new key and its certificate for whoever the URI names.
func (a *authority) sign(uri, certFile, keyFile string) error {
	name, err := url.Parse(uri)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := template(uri)
	template.URIs = []*url.URL{name}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", private); err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", der)
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-clockSlack),
		NotAfter:     now.Add(validity),
	}
}

func writePEM(file, kind string, der []byte) error {
	return writeFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
