package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"
)

// ListenerTLS reads the files of section [tls] and returns what the clients'
// listener needs, or nil when it is to speak plain TCP. Its error is Faults.
func (c *Config) ListenerTLS() (*tls.Config, error) {
	k := checker{c: c}
	return k.tls(), k.err()
}

// tls checks section [tls], and returns it as a listener needs it.
func (k *checker) tls() *tls.Config {
	t := k.c.TLS
	cert := k.pair("tls.cert", t.Cert, "tls.key", t.Key)
	pool := k.ca("tls.client_ca", t.ClientCA)
	if t.ClientCA != "" && t.Cert == "" && t.Key == "" && !k.unread["tls.cert"] && !k.unread["tls.key"] {
		k.fault("tls.client_ca", "has no effect without TLS; set tls.cert and tls.key")
	}
	if cert == nil {
		return nil
	}
	conf := &tls.Config{
		// docs/PROTOCOL.md: TLS 1.2 or newer.
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{*cert},
	}
	if pool != nil {
		conf.ClientCAs = pool
		conf.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return conf
}

// pair reads a certificate and its private key: both are set, or neither. It
// returns nil when there is no pair, or not a good one.
func (k *checker) pair(certKey, certFile, keyKey, keyFile string) *tls.Certificate {
	switch {
	case certFile == "" && keyFile == "":
		return nil
	case certFile == "":
		if !k.unread[certKey] {
			k.fault(keyKey, "%s is not set; set it to the certificate of this key, or remove both", certKey)
		}
		return nil
	case keyFile == "":
		if !k.unread[keyKey] {
			k.fault(certKey, "%s is not set; set it to the private key of this certificate, or remove both", keyKey)
		}
		return nil
	}
	certPEM, _, certProblem := readFile(certFile)
	if certProblem == "" && !hasPEM(certPEM, "CERTIFICATE") {
		certProblem = quote(certFile) + " has no certificate in PEM form; name a file that has"
	}
	keyPEM, mode, keyProblem := readFile(keyFile)
	if keyProblem == "" && !hasPEM(keyPEM, "PRIVATE KEY") {
		keyProblem = quote(keyFile) + " has no private key in PEM form; name a file that has"
	}
	if certProblem != "" {
		k.fault(certKey, "%s", certProblem)
	}
	if keyProblem != "" {
		k.fault(keyKey, "%s", keyProblem)
	}
	if certProblem != "" || keyProblem != "" {
		return nil
	}
	if problem := exposed(keyFile, mode); problem != "" {
		k.warn(keyKey, "%s", problem)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		k.fault(certKey, "%s and %s are no certificate with its key: %s; name two files that belong together",
			quote(certFile), quote(keyFile), strings.TrimPrefix(err.Error(), "tls: "))
		return nil
	}
	k.validity(certKey, certFile, cert.Leaf)
	return &cert
}

// validity warns of a certificate that the other side will refuse. It does not keep the
// server from starting: clients may be told to skip the check, and a reload can
// mend it.
func (k *checker) validity(key, file string, cert *x509.Certificate) {
	now := time.Now()
	switch {
	case now.After(cert.NotAfter):
		k.warn(key, "%s ran out on %s, so it will be refused; renew it", quote(file), cert.NotAfter.Format(time.DateOnly))
	case now.Before(cert.NotBefore):
		k.warn(key, "%s is not valid before %s, so it will be refused; check this machine's clock", quote(file), cert.NotBefore.Format(time.DateOnly))
	}
}

// ca reads the certificates of a CA. It returns nil when there is none.
func (k *checker) ca(key, file string) *x509.CertPool {
	if file == "" {
		return nil
	}
	data, _, problem := readFile(file)
	if problem != "" {
		k.fault(key, "%s", problem)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		k.fault(key, "%s has no certificate in PEM form; name a file that has", quote(file))
		return nil
	}
	return pool
}

// hasPEM tells whether data has a block whose type ends so.
func hasPEM(data []byte, kind string) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, kind) {
			return true
		}
	}
	return false
}
