package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/client"
	"github.com/ticketing-io/ticketing/core/internal/testca"
	"github.com/ticketing-io/ticketing/core/node"
)

// trio is a cluster on this machine's loopback, with certificates.
type trio struct {
	t       *testing.T
	flags   []map[string]string
	clients []string
	nodes   []*node.Node
	logs    []*logBuffer
}

// newTrio prepares the nodes n1, n2, … of a cluster and starts none.
func newTrio(t *testing.T, size int) *trio {
	t.Helper()
	c := &trio{t: t, nodes: make([]*node.Node, size), logs: make([]*logBuffer, size)}
	ca := testca.New(t)
	file := ca.WriteFile(t, t.TempDir())
	var members, rafts []string
	for i := range size {
		rafts = append(rafts, freeAddr(t))
		c.clients = append(c.clients, freeAddr(t))
		members = append(members, fmt.Sprintf("n%d=%s=%s", i+1, rafts[i], c.clients[i]))
	}
	for i := range size {
		id, dir := fmt.Sprintf("n%d", i+1), t.TempDir()
		cert, key := ca.Node(t, id).WriteFiles(t, dir)
		c.flags = append(c.flags, map[string]string{
			"listen": c.clients[i], "cluster-listen": rafts[i], "cluster-node-id": id, "cluster-data-dir": filepath.Join(dir, "data"),
			"cluster-members": strings.Join(members, ","), "cluster-cert": cert, "cluster-key": key, "cluster-ca": file,
		})
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	return c
}

func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func (c *trio) start(i int) error {
	c.logs[i] = &logBuffer{}
	n, err := node.Start(c.t.Context(), load(c.t, c.flags[i]), node.Options{Logger: slog.New(slog.NewTextHandler(c.logs[i], nil))})
	c.nodes[i] = n
	return err
}

func (c *trio) startAll() {
	c.t.Helper()
	for i := range c.nodes {
		if err := c.start(i); err != nil {
			c.t.Fatal(err)
		}
	}
	for i := range c.nodes {
		c.awaitReady(i)
	}
}

// stop closes a node; each of them ends well.
func (c *trio) stop(i int) {
	if c.nodes[i] == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.nodes[i].Close(ctx); err != nil {
		c.t.Errorf("close n%d: %v\n%s", i+1, err, c.logs[i])
	}
	c.nodes[i] = nil
}

func (c *trio) awaitReady(i int) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := c.nodes[i].Ready()
		if err == nil && c.nodes[i].Addr() != nil {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("n%d is not ready: %v\n%s", i+1, err, c.logs[i])
		}
	}
}

func (c *trio) broker() *client.Broker {
	c.t.Helper()
	b, err := client.Connect(c.clients...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { b.Close() })
	return b
}

func acquire(t *testing.T, b *client.Broker, key string, wait, lease time.Duration) *client.Ticket {
	t.Helper()
	ticket, err := b.Acquire(t.Context(), key, wait, lease, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func TestAPublishedClientIsServedByACluster(t *testing.T) {
	c := newTrio(t, 3)
	c.startAll()
	official(t, append([]string{"--ops", "500"}, c.clients...)...)
}

// A cluster of one is the durable single server: what was granted stays granted over
// a restart, and tokens go on above.
func TestAClusterOfOneGoesOn(t *testing.T) {
	c := newTrio(t, 1)
	c.flags[0]["listen"] = c.clients[0]
	c.startAll()
	b, err := client.New(client.Config{Addrs: []string{c.clients[0]}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	held := acquire(t, b, "held", 10*time.Second, 200*time.Second)
	if held.Domain() != client.DomainCluster {
		t.Errorf("domain %v", held.Domain())
	}
	token := held.Token()
	held.Detach()
	c.stop(0)
	c.startAll()
	if _, err := b.Acquire(t.Context(), "held", 0, time.Second, 0); !errors.Is(err, client.ErrTimeout) {
		// The first attempt may meet the session that the restart ended.
		if _, err = b.Acquire(t.Context(), "held", time.Second, time.Second, 0); !errors.Is(err, client.ErrTimeout) {
			t.Errorf("a lock that was held before the restart: %v", err)
		}
	}
	if err := b.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := acquire(t, b, "next", 10*time.Second, time.Second); next.Token() <= token {
		t.Errorf("token %d after the restart, %d before", next.Token(), token)
	}
	if err := b.Release(t.Context(), "held", token); err != nil {
		t.Errorf("the release of a lock from before the restart: %v", err)
	}
}

// A node that can't point to anybody has no open port, and says why it is not ready.
func TestANodeAloneOpensNoPort(t *testing.T) {
	c := newTrio(t, 3)
	if err := c.start(0); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if c.nodes[0].Ready() == nil || c.nodes[0].Addr() != nil {
			t.Fatal("a node alone is ready")
		}
		if nc, err := net.Dial("tcp", c.clients[0]); err == nil {
			nc.Close()
			t.Fatal("a node alone takes connections")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.nodes[0].Ready(); err == nil || err.Error() == "" {
		t.Error("it does not say why")
	}
	for i := 1; i < 3; i++ {
		if err := c.start(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		c.awaitReady(i)
	}
	acquire(t, c.broker(), "k", 10*time.Second, time.Second)
}

// Stopped one after the other, as in a rolling restart, the nodes lose no lock, and
// clients find the next leader by themselves.
func TestARollingRestart(t *testing.T) {
	c := newTrio(t, 3)
	c.startAll()
	b := c.broker()
	held := acquire(t, b, "held", 10*time.Second, 200*time.Second)
	for i := range c.nodes {
		c.stop(i)
		ticket := acquire(t, b, "other", 20*time.Second, 10*time.Second)
		if ticket.Token() <= held.Token() {
			t.Errorf("token %d after %d", ticket.Token(), held.Token())
		}
		if err := ticket.Release(t.Context()); err != nil && !errors.Is(err, client.ErrIndeterminate) {
			t.Error(err)
		}
		if err := c.start(i); err != nil {
			t.Fatal(err)
		}
		c.awaitReady(i)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
}

// Certificates are read again; a faulty new one leaves the old one in use.
func TestAClustersCertificatesAreReadAgain(t *testing.T) {
	c := newTrio(t, 1)
	c.startAll()
	good := load(t, c.flags[0])
	if err := c.nodes[0].Reload(good); err != nil {
		t.Errorf("the same again: %v", err)
	}
	bad := good
	bad.Cluster.Cert, bad.Cluster.Key = testca.New(t).Node(t, "n1").WriteFiles(t, t.TempDir())
	if err := c.nodes[0].Reload(bad); err == nil {
		t.Error("a certificate of another CA was taken over")
	}
}
