package link

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ticketing-io/ticketing/core/internal/testca"
)

func TestReloadChangesNewStreamsOnly(t *testing.T) {
	t.Parallel()
	before, after := testca.New(t), testca.New(t)
	n1 := secured(t, Config{NodeID: "n1"}, before, before.Node(t, "n1"))
	n2 := secured(t, Config{NodeID: "n2"}, before, before.Node(t, "n2"))
	raft := n2.Raft()
	addr := n2.Addr().String()
	near := dial(t, n1, Raft, addr, "n2")
	far := accept(t, raft)

	if err := n2.Reload(files(t, after, after.Node(t, "n2"))); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, n1, Raft, addr, "n2", ErrUntrusted)
	joined(t, near, far)
	joined(t, far, near)

	if err := n1.Reload(files(t, after, after.Node(t, "n1"))); err != nil {
		t.Fatal(err)
	}
	joined(t, dial(t, n1, Raft, addr, "n2"), accept(t, raft))
	joined(t, near, far)
}

// A CA is changed without a pause by a file that holds both for a while.
func TestACAFileMayHoldMoreThanOne(t *testing.T) {
	t.Parallel()
	before, after := testca.New(t), testca.New(t)
	both := func(f Files, other *testca.CA) Files {
		ca, err := os.ReadFile(other.WriteFile(t, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		own, err := os.ReadFile(f.CA)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.CA, append(own, ca...), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	n1 := start(t, Config{NodeID: "n1", TLS: both(files(t, before, before.Node(t, "n1")), after)})
	n2 := start(t, Config{NodeID: "n2", TLS: both(files(t, after, after.Node(t, "n2")), before), Listen: "127.0.0.1:0"})
	raft := n2.Raft()
	joined(t, dial(t, n1, Raft, n2.Addr().String(), "n2"), accept(t, raft))
}

// faulty returns files that no link of node n2 may take, by what is wrong with them.
func faulty(t *testing.T, ca *testca.CA) map[string]Files {
	other := testca.New(t)
	good := files(t, ca, ca.Node(t, "n2"))
	second := files(t, ca, ca.Node(t, "n2"))
	nothing := good.Cert + ".nothing"
	if err := os.WriteFile(nothing, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := good.Cert + ".huge"
	if err := os.WriteFile(huge, bytes.Repeat([]byte("a"), maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]Files{
		"no certificate named":  {"", good.Key, good.CA},
		"no key named":          {good.Cert, "", good.CA},
		"no CA named":           {good.Cert, good.Key, ""},
		"no such file":          {good.Cert + ".gone", good.Key, good.CA},
		"no certificate in it":  {nothing, good.Key, good.CA},
		"no key in it":          {good.Cert, nothing, good.CA},
		"no CA in it":           {good.Cert, good.Key, nothing},
		"a huge file":           {good.Cert, good.Key, huge},
		"another key":           {good.Cert, second.Key, good.CA},
		"of another CA":         {good.Cert, good.Key, other.WriteFile(t, t.TempDir())},
		"of another node":       files(t, ca, ca.Node(t, "n3")),
		"of an operator":        files(t, ca, ca.Operator(t, "n2")),
		"of a client":           files(t, ca, ca.Client(t)),
		"for servers only":      files(t, ca, ca.Node(t, "n2", serverOnly)),
		"for clients only":      files(t, ca, ca.Node(t, "n2", clientOnly)),
		"a key for certificate": {good.Key, good.Cert, good.CA},
	}
}

func TestAFaultyFileKeepsTheOldOnes(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	n1 := secured(t, Config{NodeID: "n1"}, ca, ca.Node(t, "n1"))
	n2 := secured(t, Config{NodeID: "n2"}, ca, ca.Node(t, "n2"))
	raft := n2.Raft()
	all := faulty(t, ca)
	all["run out"] = files(t, ca, ca.Node(t, "n2", expired))
	all["not valid yet"] = files(t, ca, ca.Node(t, "n2", early))
	all["no TLS"] = Files{}
	for name, f := range all {
		if err := n2.Reload(f); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "PRIVATE KEY-----") {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
		joined(t, dial(t, n1, Raft, n2.Addr().String(), "n2"), accept(t, raft))
	}
}

func TestALinkDoesNotStartWithFaultyFiles(t *testing.T) {
	t.Parallel()
	for name, f := range faulty(t, testca.New(t)) {
		if l, err := Listen(context.Background(), Config{NodeID: "n2", TLS: f}); err == nil {
			l.Close()
			t.Errorf("%s: no error", name)
		}
	}
	for name, cfg := range map[string]Config{
		"a bad id":             {NodeID: "n/2"},
		"an operator listens":  {Listen: "127.0.0.1:0"},
		"no address":           {NodeID: "n2", Listen: "127.0.0.1"},
		"somebody else's port": {NodeID: "n2", Listen: taken(t)},
	} {
		if l, err := Listen(context.Background(), cfg); err == nil {
			l.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

func taken(t *testing.T) string {
	return start(t, Config{NodeID: "n1", Listen: "127.0.0.1:0"}).Addr().String()
}

// A node with a certificate that ran out starts, with a warning, so that a reload can
// mend it; a link that has no TLS has nothing to reload.
func TestACertificateThatRanOutIsMendedByAReload(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	n1 := secured(t, Config{NodeID: "n1"}, ca, ca.Node(t, "n1"))
	raft := n1.Raft()
	log := &logBuffer{}
	n2 := start(t, Config{NodeID: "n2", TLS: files(t, ca, ca.Node(t, "n2", expired)), Logger: log.logger()})
	if !strings.Contains(log.String(), "ran out") {
		t.Errorf("no warning: %s", log)
	}
	refusedWith(t, n2, Raft, n1.Addr().String(), "n1", ErrRefused)
	if err := n2.Reload(files(t, ca, ca.Node(t, "n2"))); err != nil {
		t.Fatal(err)
	}
	joined(t, dial(t, n2, Raft, n1.Addr().String(), "n1"), accept(t, raft))

	plain := start(t, Config{NodeID: "n3"})
	if err := plain.Reload(Files{}); err != nil {
		t.Error(err)
	}
	if err := plain.Reload(files(t, ca, ca.Node(t, "n3"))); err == nil {
		t.Error("TLS was turned on by a reload")
	}
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
