package control

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/testca"
	"github.com/ticketing-io/ticketing/core/link"
)

// over returns how a side of the link dials.
func over(l *link.Link) Dial {
	return func(ctx context.Context, addr, id string) (net.Conn, error) {
		return l.Dial(ctx, link.Control, addr, id)
	}
}

// An operator with a certificate asks a follower over real links, which asks the
// leader, whose log names the operator. A stranger's certificate asks nobody.
func TestOverLinksWithTLS(t *testing.T) {
	ca := testca.New(t)
	files := func(ca *testca.CA, p testca.Pair) link.Files {
		dir := t.TempDir()
		cert, key := p.WriteFiles(t, dir)
		return link.Files{Cert: cert, Key: key, CA: ca.WriteFile(t, dir)}
	}
	open := func(cfg link.Config) *link.Link {
		l, err := link.Listen(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	start := func(id string) (*scripted, *bytes.Buffer, string) {
		l := open(link.Config{NodeID: id, Listen: "127.0.0.1:0", TLS: files(ca, ca.Node(t, id))})
		node, log, pool := &scripted{}, new(bytes.Buffer), NewPool(over(l))
		server := NewServer(node, pool, slog.New(slog.NewTextHandler(log, nil)))
		served := make(chan error, 1)
		go func() { served <- server.Serve(l.Control()) }()
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := errors.Join(server.Close(ctx), <-served); err != nil {
				t.Error(err)
			}
			pool.Close()
		})
		return node, log, l.Addr().String()
	}
	leader, log, leaderAddr := start("a")
	leader.status = Status{Self: Peer{ID: "a"}, Role: Leader}
	leader.snapshot = large
	follower, _, followerAddr := start("b")
	follower.status = Status{Self: Peer{ID: "b"}, Role: Follower, Leader: Peer{ID: "a", Raft: leaderAddr}}

	operator := NewClient(over(open(link.Config{TLS: files(ca, ca.Operator(t, "alice"))})), followerAddr, "")
	defer operator.Close()
	if err := operator.Promote(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := operator.SaveSnapshot(t.Context(), &saved); err != nil || !bytes.Equal(saved.Bytes(), large) {
		t.Errorf("saved %d bytes, %v", saved.Len(), err)
	}
	if err := operator.RestoreSnapshot(t.Context(), bytes.NewReader(large), true); err != nil || !bytes.Equal(leader.restored, large) {
		t.Errorf("restored %d bytes, %v", len(leader.restored), err)
	}
	if want := `by="operator alice at node b"`; !bytes.Contains(log.Bytes(), []byte(want)) {
		t.Errorf("the leader's log has no %s:\n%s", want, log)
	}

	other := testca.New(t)
	stranger := NewClient(over(open(link.Config{TLS: files(other, other.Operator(t, "alice"))})), followerAddr, "")
	defer stranger.Close()
	if _, err := stranger.Status(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a stranger: %v", err)
	}
	if got := leader.calls(); len(got) != 3 {
		t.Errorf("the leader was asked %q", got)
	}
}
