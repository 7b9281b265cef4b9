package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files and REFERENCE.md anew")

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run go test -update and read the change.\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

// scene copies testdata into a folder of its own, with keys and certificates
// beside it and permissions that nobody warns of, and makes it the working folder.
func scene(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Chmod(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	long := time.Now().AddDate(30, 0, 0)
	writeCertificate(t, "server", time.Time{}, long)
	writeCertificate(t, "ca", time.Time{}, long)
	writeCertificate(t, "node-a", time.Time{}, long, "ticketing://node/a")
	writeCertificate(t, "node-b", time.Time{}, long, "ticketing://node/b")
	writeCertificate(t, "two", time.Time{}, long, "ticketing://node/a", "ticketing://node/b")
	writeCertificate(t, "other", time.Time{}, long)
	writeCertificate(t, "expired", time.Time{}, time.Date(2020, 2, 3, 0, 0, 0, 0, time.UTC))
	writeCertificate(t, "future", time.Date(2999, 2, 3, 0, 0, 0, 0, time.UTC), time.Date(2999, 3, 3, 0, 0, 0, 0, time.UTC))
}

// writeCertificate writes NAME.pem and NAME.key, a CA of its own with these URIs as
// names.
func writeCertificate(t *testing.T, name string, from, to time.Time, uris ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{"localhost"},
		NotBefore:    from,
		NotAfter:     to,
		IsCA:         true,

		BasicConstraintsValid: true,
	}
	for _, s := range uris {
		uri, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	if name == "two" {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, name+".pem", "CERTIFICATE", cert)
	writePEM(t, name+".key", "PRIVATE KEY", der)
}

func writePEM(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every file under testdata, with what it sets and everything that is said of it.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	scene(t)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".toml"), func(t *testing.T) {
			c, warnings, err := Load(Sources{File: name})
			got := describe(c, warnings, err)
			golden(t, filepath.Join(home, strings.TrimSuffix(file, ".toml")+".golden"), got)
			for _, secret := range []string{"hunter2", "alices-long", "twice\""} {
				if strings.Contains(got, secret) {
					t.Errorf("a client token is shown: %s", got)
				}
			}
		})
	}
}

// describe writes what is not at its default, and what was said.
func describe(c Config, warnings Warnings, err error) string {
	var b strings.Builder
	defaults := Default()
	for _, k := range keys {
		if v := k.in(&c).String(); v != k.in(&defaults).String() {
			fmt.Fprintf(&b, "%s = %s\n", k.Name, v)
		}
	}
	for _, token := range c.ClientTokens {
		fmt.Fprintln(&b, token)
	}
	if warnings != nil {
		fmt.Fprintf(&b, "\nwarnings:\n%s\n", warnings)
	}
	if err != nil {
		fmt.Fprintf(&b, "\nfaults:\n%s\n", err)
	}
	return b.String()
}
