package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// Files names the files of a node's or an operator's TLS, in PEM form: a certificate
// with its chain, its private key, and the CA that signs all the cluster's. The zero
// value is no TLS.
type Files struct{ Cert, Key, CA string }

// maxFile bounds each of the files, in bytes: some hundred certificates.
const maxFile = 1 << 20

// credentials are what Files held when they were read.
type credentials struct {
	cert tls.Certificate
	ca   *x509.CertPool
	self Identity
}

// load reads files and checks that they belong together and name nodeID; "" is
// whomever the certificate names. Validity in time is for valid to check.
func load(files Files, nodeID string) (*credentials, error) {
	certPEM, err := readFile(files.Cert)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	keyPEM, err := readFile(files.Key)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	caPEM, err := readFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("CA: %w", err)
	}
	c := &credentials{ca: x509.NewCertPool()}
	if !c.ca.AppendCertsFromPEM(caPEM) {
		return nil, fmt.Errorf("CA: %s has no certificate in PEM form", files.CA)
	}
	if c.cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", files.Cert, files.Key, err)
	}
	if c.self, err = identityOf(c.cert.Leaf); err != nil {
		return nil, fmt.Errorf("certificate %s: %w", files.Cert, err)
	}
	if nodeID != "" && c.self != (Identity{ID: nodeID}) {
		return nil, fmt.Errorf("certificate %s is that of %s, this is node %s", files.Cert, c.self, nodeID)
	}
	if err := c.signed(); err != nil {
		return nil, fmt.Errorf("certificate %s does not pass with CA %s: %w", files.Cert, files.CA, err)
	}
	return c, nil
}

// signed checks that the CA vouches for the own certificate as the other sides will
// ask: a node is client and server of streams, an operator client. When is left out:
// a server must start with a certificate that ran out, for a reload can mend that.
func (c *credentials) signed() error {
	chain, err := parseChain(c.cert.Certificate)
	if err != nil {
		return err
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if !c.self.Operator {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	now := time.Now()
	if leaf := chain[0]; now.After(leaf.NotAfter) {
		now = leaf.NotAfter
	} else if now.Before(leaf.NotBefore) {
		now = leaf.NotBefore
	}
	for _, usage := range usages {
		if err := c.verify(chain, usage, now); err != nil {
			return err
		}
	}
	return nil
}

// valid checks the own certificate's time.
func (c *credentials) valid() error {
	leaf, now := c.cert.Leaf, time.Now()
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("this side's certificate ran out at %s, so no stream can be opened; renew it", leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("this side's certificate is not valid before %s, so no stream can be opened; check this machine's clock", leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}

// verify checks that a chain, the leaf first, leads to the cluster's CA.
func (c *credentials) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: c.ca, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// identify returns whom a verified handshake proves to be at the other end.
func (c *credentials) identify(state tls.ConnectionState, usage x509.ExtKeyUsage) (Identity, error) {
	if err := c.verify(state.PeerCertificates, usage, time.Now()); err != nil {
		return Identity{}, err
	}
	return identityOf(state.PeerCertificates[0])
}

// server returns the configuration of the listening side. A resumed session would
// skip what a reload has changed, so there are no tickets.
func (c *credentials) server(peer *Identity) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.cert},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              c.ca,
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			*peer, err = c.identify(state, x509.ExtKeyUsageClientAuth)
			return err
		},
	}
}

// client returns the configuration of the dialing side. check decides on who answers.
func (c *credentials) client(check func(Identity) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// Always the own one: by the CAs that the other side names, none might fit, and
		// it would see no certificate instead of the wrong one.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.cert, nil },
		// The standard check compares a host's name. A node's is its id, whatever its
		// address is: VerifyConnection checks the chain, and that instead.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			peer, err := c.identify(state, x509.ExtKeyUsageServerAuth)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrUntrusted, err)
			}
			return check(peer)
		},
	}
}

func parseChain(der [][]byte) (chain []*x509.Certificate, err error) {
	for _, raw := range der {
		cert, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, err
		}
		chain = append(chain, cert)
	}
	return chain, nil
}

func readFile(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("no file is named; certificate, key and CA are needed")
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is of %d bytes, more than %d", name, info.Size(), maxFile)
	}
	return os.ReadFile(name)
}
