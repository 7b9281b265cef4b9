package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// TLSMode says how a server's certificate is checked.
type TLSMode uint8

const (
	// TLSOff: plain TCP.
	TLSOff TLSMode = iota
	// TLSSystem: the certificate is checked with the system's trust store.
	TLSSystem
	// TLSCA: the certificate is checked with the authorities of CAFile or CAFunc.
	TLSCA
	// TLSInsecureSkipVerify: no check at all, so anybody in between can read and
	// write. For tests only.
	TLSInsecureSkipVerify
)

// TLS is the encryption of a broker's connections. Its files and function are
// read again at each dial.
type TLS struct {
	Mode TLSMode

	// CAFile holds the authorities' certificates in PEM; CAFunc returns them. One
	// of the two with TLSCA, none with another mode.
	CAFile string
	CAFunc func() ([]byte, error)

	// CertFile and KeyFile are an optional client certificate and its key in PEM.
	CertFile, KeyFile string

	// ServerName is the name that the server's certificate must carry; empty is
	// the host of the dialled address.
	ServerName string
}

// check tells everything that is wrong with t, and reads its files once.
func (t *TLS) check() []error {
	var faults []error
	if t.Mode > TLSInsecureSkipVerify {
		faults = append(faults, fmt.Errorf("TLS mode %d is unknown", t.Mode))
	}
	hasCA := t.CAFile != "" || t.CAFunc != nil
	switch {
	case t.CAFile != "" && t.CAFunc != nil:
		faults = append(faults, errors.New("TLS: both CAFile and CAFunc are set"))
	case t.Mode == TLSCA && !hasCA:
		faults = append(faults, errors.New("TLS: mode TLSCA needs CAFile or CAFunc"))
	case t.Mode != TLSCA && hasCA:
		faults = append(faults, errors.New("TLS: CAFile and CAFunc are for mode TLSCA only"))
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		faults = append(faults, errors.New("TLS: CertFile and KeyFile go together"))
	}
	if t.Mode == TLSOff && (t.CertFile != "" || t.KeyFile != "" || t.ServerName != "") {
		faults = append(faults, errors.New("TLS is off, but a certificate or a server name is set"))
	}
	if len(faults) > 0 {
		return faults
	}
	if t.CAFile != "" {
		if _, err := t.authorities(); err != nil {
			faults = append(faults, err)
		}
	}
	if _, err := t.certificates(); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// config returns the crypto/tls form of t as its files are now, for a connection
// to addr.
func (t *TLS) config(addr string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	var err error
	switch t.Mode {
	case TLSCA:
		cfg.RootCAs, err = t.authorities()
	case TLSInsecureSkipVerify:
		cfg.InsecureSkipVerify = true
	}
	if err != nil {
		return nil, err
	}
	cfg.Certificates, err = t.certificates()
	return cfg, err
}

func (t *TLS) authorities() (*x509.CertPool, error) {
	var pem []byte
	var err error
	if t.CAFunc != nil {
		pem, err = t.CAFunc()
	} else {
		pem, err = os.ReadFile(t.CAFile)
	}
	if err != nil {
		return nil, fmt.Errorf("TLS: authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("TLS: authorities: no certificate in PEM is in them")
	}
	return pool, nil
}

func (t *TLS) certificates() ([]tls.Certificate, error) {
	if t.CertFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("TLS: client certificate: %w", err)
	}
	return []tls.Certificate{cert}, nil
}
