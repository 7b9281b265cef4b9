package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/internal/testca"
)

// officialEnv names a program that drives a server with a published client of an
// earlier version: code that nobody here wrote. Without it, one is looked for
// beside the checkout.
const officialEnv = "TICKETING_OFFICIAL"

func official(t *testing.T, args ...string) {
	t.Helper()
	program := os.Getenv(officialEnv)
	if program == "" {
		program = filepath.Join("..", "..", "..", "shared", "official", "run")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("no published client here; set %s to a program that drives one", officialEnv)
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok ") || strings.Contains(string(out), "FAIL") {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
	t.Logf("%s", out)
}

func TestAPublishedClientIsServed(t *testing.T) {
	n, _, _ := start(t, map[string]string{})
	official(t, "--ops", "500", n.Addr().String())
}

func TestAPublishedClientIsServedWithTokensAndTLS(t *testing.T) {
	const token = "first-secret-of-sixteen"
	dir := t.TempDir()
	ca := testca.New(t)
	ca.Server(t).WriteFiles(t, dir)
	n, _, _ := start(t, map[string]string{
		"client-tokens-file": write(t, dir, "tokens", []byte(token+"\n")),
		"tls-cert":           filepath.Join(dir, "cert.pem"), "tls-key": filepath.Join(dir, "key.pem"),
	})
	addr := n.Addr().String()
	official(t, "--ops", "500", "--ca", ca.WriteFile(t, dir), "--token", token, addr)
	official(t, "--ca", ca.WriteFile(t, dir), "--bad-token", "--token", "another-secret-of-sixteen", addr)
}
