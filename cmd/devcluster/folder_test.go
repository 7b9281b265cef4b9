package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/config"
)

// laidOut is a folder with all its files.
func laidOut(t *testing.T) folder {
	t.Helper()
	f := folder{dir: filepath.Join(t.TempDir(), "cluster"), port: 19225}
	if _, err := f.layOut(false); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheServerTakesEveryConfiguration(t *testing.T) {
	f := laidOut(t)
	for i, name := range names {
		n := f.node(name)
		c, warnings, err := config.Load(config.Sources{File: n.config})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range warnings {
			if w.Key != "admin" { // until it is built
				t.Errorf("%s: %s", name, w)
			}
		}
		if c.Listen != n.client || c.Admin.Listen != n.admin || len(c.ClientTokens) != 1 {
			t.Errorf("%s: %+v", name, c)
		}
		one := c.Cluster
		if one.NodeID != name || one.Listen != n.raft || one.DataDir != n.data || one.Cert == "" || one.Key == "" || one.CA == "" {
			t.Errorf("%s: %+v", name, one)
		}
		if want := beginners; i < beginners && len(one.Members) != want || i >= beginners && (len(one.Members) > 0 || c.Advertise != n.client) {
			t.Errorf("%s: members %v, advertise %q", name, one.Members, c.Advertise)
		}
	}
}

func TestCertificatesNameTheirNodeAndTheOperator(t *testing.T) {
	f := laidOut(t)
	roots := x509.NewCertPool()
	roots.AddCert(readCertificate(t, f.ca()))
	for file, uri := range map[string]string{
		f.node("n1").cert: "ticketing://node/n1",
		f.node("n5").cert: "ticketing://node/n5",
		f.operatorCert():  "ticketing://operator/dev",
	} {
		cert := readCertificate(t, file)
		if len(cert.URIs) != 1 || cert.URIs[0].String() != uri {
			t.Errorf("%s names %v, want %s", file, cert.URIs, uri)
		}
		for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
			for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				options := x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}
				if _, err := cert.Verify(options); err != nil {
					t.Errorf("%s for %s: %v", file, host, err)
				}
			}
		}
	}
}

func readCertificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestOnlyTheOwnerReadsTheFiles(t *testing.T) {
	f := laidOut(t)
	err := filepath.Walk(f.dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = errors.New(path + " is open to others")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// store makes a node have something stored.
func store(t *testing.T, f folder, name string) {
	t.Helper()
	if err := os.MkdirAll(f.node(name).data, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestNodesWithDataAreThoseThatStart(t *testing.T) {
	for _, test := range []struct {
		stored []string
		fresh  bool
		want   []string
	}{
		{nil, false, []string{"n1", "n2", "n3"}},
		{[]string{"n1", "n2", "n4"}, false, []string{"n1", "n2", "n4"}}, // n3 was replaced
		{[]string{"n1", "n2", "n4"}, true, []string{"n1", "n2", "n3"}},
	} {
		f := laidOut(t)
		for _, name := range test.stored {
			store(t, f, name)
		}
		begin, err := f.layOut(test.fresh)
		if err != nil || !slices.Equal(begin, test.want) {
			t.Errorf("stored %v, fresh %v: %v, %v; want %v", test.stored, test.fresh, begin, err, test.want)
		}
	}
}

// The cluster has stored its addresses: other ones would leave nodes that never
// find each other.
func TestOtherPortsNeedAFreshStart(t *testing.T) {
	f := laidOut(t)
	store(t, f, "n2")
	f.port += 100
	if _, err := f.layOut(false); err == nil || !strings.Contains(err.Error(), "-fresh") {
		t.Errorf("other ports: %v", err)
	}
	if _, err := f.layOut(true); err != nil {
		t.Errorf("other ports, fresh: %v", err)
	}
}
