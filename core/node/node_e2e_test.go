package node_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/internal/testca"
	"github.com/ticketing-io/ticketing/core/node"
	"github.com/ticketing-io/ticketing/core/wire"
)

// logBuffer is a log that a test may read while a node writes it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func load(t *testing.T, flags map[string]string) config.Config {
	t.Helper()
	if flags["listen"] == "" {
		flags["listen"] = "127.0.0.1:0"
	}
	cfg, _, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// start starts a node that ends with the test.
func start(t *testing.T, flags map[string]string) (*node.Node, *logBuffer, *slog.LevelVar) {
	t.Helper()
	log, level := &logBuffer{}, &slog.LevelVar{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	n, err := node.Start(t.Context(), load(t, flags), node.Options{Logger: logger, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, n) })
	return n, log, level
}

func shut(t *testing.T, n *node.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
}

func mustRead(t *testing.T, c *rawClient) wire.Reply {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	r, err := c.read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestALockIsTakenWaitedForAndReleased(t *testing.T) {
	n, _, _ := start(t, map[string]string{})
	holder, waiter := dialRaw(t, n.Addr().String(), ""), dialRaw(t, n.Addr().String(), "")
	holder.acquire("order-42", 0, 30, 7)
	holder.flush()
	first := mustRead(t, holder)
	if first.Op != wire.OpAcquire || first.Owner != 7 || first.Token == 0 {
		t.Fatalf("answered %+v", first)
	}
	waiter.acquire("order-42", 5, 30, 8)
	waiter.flush()
	holder.release("order-42", first.Token)
	holder.flush()
	if r := mustRead(t, holder); r.Op != wire.OpRelease {
		t.Fatalf("answered %+v", r)
	}
	if r := mustRead(t, waiter); r.Op != wire.OpAcquire || r.Owner != 8 || r.Token <= first.Token {
		t.Fatalf("answered %+v after token %d", r, first.Token)
	}
}

func TestTokensBeginAtTheStartTimeAndSoGoOnOverARestart(t *testing.T) {
	var last uint64
	for range 2 {
		n, _, _ := start(t, map[string]string{})
		c := dialRaw(t, n.Addr().String(), "")
		for range 3 {
			c.acquire("order-42", 0, 30, 1)
			c.flush()
			r := mustRead(t, c)
			if r.Token <= last || r.Token >= 1<<53 {
				t.Fatalf("token %d after %d", r.Token, last)
			}
			last = r.Token
			c.release("order-42", r.Token)
			c.flush()
			mustRead(t, c)
		}
		shut(t, n)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	addr := ln.Addr().String()
	_, err = node.Start(t.Context(), load(t, map[string]string{"listen": addr}), node.Options{})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), addr) {
		t.Fatalf("error %q does not name %s", err, addr)
	}
}

func TestCloseAnswersWaitersBusy(t *testing.T) {
	n, log, _ := start(t, map[string]string{})
	c := dialRaw(t, n.Addr().String(), "")
	c.acquire("order-42", 0, 30, 1)
	c.acquire("order-42", 60, 30, 2)
	c.flush()
	mustRead(t, c)
	shut(t, n)
	if r := mustRead(t, c); r.Op != wire.OpBusy || r.Owner != 2 {
		t.Fatalf("answered %+v", r)
	}
	if _, err := c.read(); err == nil {
		t.Fatal("the connection is still open")
	}
	if err := <-n.Served(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "locks_forgotten=1") {
		t.Errorf("the log does not say that a lock is forgotten:\n%s", log)
	}
}

func TestReloadTakesTokensAndLevelAndKeepsSessions(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "tokens", []byte("web first-secret-of-sixteen\n"))
	flags := map[string]string{"client-tokens-file": file}
	n, log, level := start(t, flags)
	addr := n.Addr().String()
	old := dialRaw(t, addr, "first-secret-of-sixteen")

	write(t, dir, "tokens", []byte("web second-secret-of-sixteen\n"))
	flags["log-level"], flags["max-connections"] = "debug", "77"
	if err := n.Reload(load(t, flags)); err != nil {
		t.Fatal(err)
	}
	dialRaw(t, addr, "second-secret-of-sixteen")
	if _, err := tryDial(addr, "first-secret-of-sixteen"); err == nil {
		t.Error("a token that was removed still opens sessions")
	}
	old.acquire("order-42", 0, 30, 1)
	old.flush()
	if r := mustRead(t, old); r.Op != wire.OpAcquire {
		t.Errorf("a session that was open is answered %+v", r)
	}
	if level.Level() != slog.LevelDebug {
		t.Errorf("log level %s", level.Level())
	}
	if !strings.Contains(log.String(), "max_connections") {
		t.Errorf("the log does not name what needs a restart:\n%s", log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

func tryDial(addr, token string) (*rawClient, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(5 * time.Second))
	c := &rawClient{Conn: nc}
	return c, c.authenticate(token)
}

func TestReloadTakesCertificates(t *testing.T) {
	dir := t.TempDir()
	ca := testca.New(t)
	flags := map[string]string{"tls-cert": filepath.Join(dir, "cert.pem"), "tls-key": filepath.Join(dir, "key.pem")}
	ca.Server(t).WriteFiles(t, dir)
	n, _, _ := start(t, flags)
	serial := func() int64 {
		c, err := tls.Dial("tcp", n.Addr().String(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Fatalf("serial %d", got)
	}
	ca.Server(t).WriteFiles(t, dir)
	if got := serial(); got != 2 {
		t.Fatalf("serial %d before the reload", got)
	}
	if err := n.Reload(load(t, flags)); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 3 {
		t.Fatalf("serial %d after the reload", got)
	}
	cfg := load(t, flags)
	write(t, dir, "cert.pem", []byte("not a certificate"))
	if err := n.Reload(cfg); err == nil {
		t.Error("a faulty certificate was taken over")
	}
	if got := serial(); got != 3 {
		t.Fatalf("serial %d after a faulty reload", got)
	}
}

func TestAClientWithoutItsCertificateIsRefused(t *testing.T) {
	dir := t.TempDir()
	ca := testca.New(t)
	ca.Server(t).WriteFiles(t, dir)
	n, _, _ := start(t, map[string]string{
		"tls-cert": filepath.Join(dir, "cert.pem"), "tls-key": filepath.Join(dir, "key.pem"), "tls-client-ca": ca.WriteFile(t, dir),
	})
	dial := func(certs ...tls.Certificate) error {
		nc, err := tls.Dial("tcp", n.Addr().String(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", Certificates: certs})
		if err != nil {
			return err
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(5 * time.Second))
		return (&rawClient{Conn: nc}).authenticate("")
	}
	if err := dial(); err == nil {
		t.Error("a session without a certificate was opened")
	}
	if err := dial(ca.Client(t).TLS()); err != nil {
		t.Error("a client with its certificate:", err)
	}
}
