package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/control"
	"github.com/ticketing-io/ticketing/core/link"
)

// fakeNode is a cluster's node that says what its test wants.
type fakeNode struct {
	mu       sync.Mutex
	asked    []string
	status   control.Status
	members  []control.Member
	err      error
	snapshot []byte
	restored []byte
	waived   bool
}

func (n *fakeNode) ask(what string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, what)
	return n.err
}

func (n *fakeNode) calls() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

func (n *fakeNode) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

func (n *fakeNode) Status() control.Status { return n.status }
func (n *fakeNode) Members(context.Context) ([]control.Member, error) {
	err := n.ask("members")
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.members, err
}
func (n *fakeNode) setMembers(list []control.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members = list
}
func (n *fakeNode) Add(_ context.Context, who control.Peer) error {
	return n.ask(strings.Join([]string{"add", who.ID, who.Raft, who.Client, who.Admin}, " "))
}
func (n *fakeNode) Remove(_ context.Context, id string) error   { return n.ask("remove " + id) }
func (n *fakeNode) Promote(_ context.Context, id string) error  { return n.ask("promote " + id) }
func (n *fakeNode) Transfer(_ context.Context, id string) error { return n.ask("transfer " + id) }
func (n *fakeNode) SaveSnapshot(_ context.Context, w io.Writer) error {
	if err := n.ask("save"); err != nil && len(n.snapshot) == 0 {
		return err
	}
	if _, err := w.Write(n.snapshot); err != nil {
		return err
	}
	return n.err
}
func (n *fakeNode) RestoreSnapshot(_ context.Context, r io.Reader, waive bool) (err error) {
	if err := n.ask("restore"); err != nil {
		return err
	}
	n.waived = waive
	n.restored, err = io.ReadAll(r)
	return err
}

// fakeCluster is nodes in memory that commands are run against, in fake time.
type fakeCluster struct {
	t     *testing.T
	nodes map[string]*memListener // by address
	// unreachable is why an address without a node can't be dialled.
	unreachable error
}

type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *memListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *memListener) Addr() net.Addr { return &net.TCPAddr{} }

// node starts the node id at ID.example:5226. It leads.
func (f *fakeCluster) node(id string) *fakeNode {
	n := &fakeNode{status: control.Status{Self: control.Peer{ID: id}, Role: control.Leader, Leader: control.Peer{ID: id}, Ready: true}}
	pool := control.NewPool(f.dial)
	server := control.NewServer(n, pool, nil)
	l := &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	f.nodes[id+".example:5226"] = l
	go server.Serve(l)
	f.t.Cleanup(func() {
		server.Close(context.Background())
		pool.Close()
	})
	return n
}

func (f *fakeCluster) dial(ctx context.Context, addr, _ string) (net.Conn, error) {
	l := f.nodes[addr]
	if l == nil {
		return nil, f.unreachable
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run runs a command line against the cluster.
func (f *fakeCluster) run(args ...string) result {
	f.t.Helper()
	var stdout, stderr bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, dial: f.dial}
	code := p.execute(f.t.Context(), args)
	return result{code, stdout.String(), stderr.String()}
}

// withCluster runs a test in fake time.
func withCluster(t *testing.T, test func(t *testing.T, f *fakeCluster)) {
	t.Helper()
	// The runtime's own goroutine for signals begins with the first of them, and must
	// not be in a bubble.
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	signal.Stop(c)
	synctest.Test(t, func(t *testing.T) {
		test(t, &fakeCluster{t: t, nodes: map[string]*memListener{}, unreachable: errors.New("connection refused")})
	})
}

var exampleMembers = []control.Member{
	{Peer: control.Peer{ID: "a", Raft: "a.example:5226", Client: "a.example:5225", Admin: "a.example:5280"}, Voter: true, Leader: true, Reachable: true, Applied: 81211, Level: 1},
	{Peer: control.Peer{ID: "b", Raft: "b.example:5226", Client: "b.example:5225"}, Voter: true, Reachable: true, Applied: 81205, Lag: 6, Level: 1, Healthy: 90*time.Minute + 300*time.Millisecond},
	{Peer: control.Peer{ID: "c", Raft: "[2001:db8::3]:5226", Client: "[2001:db8::3]:5225"}, Voter: true, Applied: 40000, Lag: 41211, Level: 1, Why: "it can't be reached: \x1b[31mconnection refused"},
	{Peer: control.Peer{ID: "d", Raft: "d.example:5226", Client: "d.example:5225"}, Reachable: true, Applied: 100, Lag: 81111, Level: 1},
}

// What each command prints, and what it asked for.
func TestClusterCommands(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  string
		asked string
	}{
		{"list", "members list", "members"},
		{"add", "members add d --raft d.example:5226 --client d.example:5225 --admin d.example:5280", "add d d.example:5226 d.example:5225 d.example:5280"},
		{"promote", "members promote d", "promote d"},
		{"remove", "members remove c", "remove c"},
		{"transfer-leader", "members transfer-leader", "transfer "},
		{"transfer-leader-to", "members transfer-leader b", "transfer b"},
	} {
		for _, form := range []string{"", "-json"} {
			t.Run(c.name+form, func(t *testing.T) {
				withCluster(t, func(t *testing.T, f *fakeCluster) {
					n := f.node("a")
					n.members = exampleMembers
					args := append(strings.Fields(c.args), "--node", "a.example:5226")
					if form != "" {
						args = append(args, "--json")
					}
					r := f.run(args...)
					golden(t, "cluster/"+c.name+form, r.String())
					if got := n.calls(); !slices.Equal(got, []string{c.asked}) {
						t.Errorf("asked %q, want %q", got, c.asked)
					}
				})
			})
		}
	}
}

// What people read when the cluster does not do it, and the exit code. What may have
// been done is not tried again.
func TestClusterErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		exit int
	}{
		{"refused", control.Refuse("Start c again, or add another node first.", `without "c" only 1 of 2 voters would be healthy, and 2 are needed: the cluster would stand still`), exitRefused},
		{"refused-plain", control.Refuse("", `"c" is no member`), exitRefused},
		{"unknown", control.Doubt("Look at the members, and try again.", "remove \"c\": leadership lost while committing log"), exitIndeterminate},
		{"no-class", errors.New("disk\nfull \x1b[2J"), exitIndeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			withCluster(t, func(t *testing.T, f *fakeCluster) {
				n := f.node("a")
				n.err = c.err
				f.node("b")
				r := f.run("members", "remove", "c", "--node", "a.example:5226", "--node", "b.example:5226")
				golden(t, "cluster/error-"+c.name, r.String())
				if got := n.calls(); r.code != c.exit || len(got) != 1 {
					t.Errorf("exit code %d, asked %q", r.code, got)
				}
			})
		})
	}
}

// An election is waited for; a cluster that stays without a leader is given up.
func TestACommandWaitsForALeader(t *testing.T) {
	withCluster(t, func(t *testing.T, f *fakeCluster) {
		n := f.node("a")
		n.err = control.Ask(control.Peer{})
		time.AfterFunc(leaderPatience/2, func() { n.fail(nil) })
		if r := f.run("members", "promote", "d", "--node", "a.example:5226"); r.code != exitOK {
			t.Errorf("%v", r)
		}
		n.fail(control.Ask(control.Peer{}))
		start := time.Now()
		r := f.run("members", "promote", "d", "--node", "a.example:5226", "--node", "gone.example:5226")
		golden(t, "cluster/error-no-leader", r.String())
		if took := time.Since(start); took > leaderPatience+askAgain {
			t.Errorf("gave up after %v", took)
		}
	})
}

// A leader that leads only now has not asked the members yet: a list waits for that,
// and says so when it takes long.
func TestListWaitsForWhatALeaderHears(t *testing.T) {
	withCluster(t, func(t *testing.T, f *fakeCluster) {
		n := f.node("a")
		n.members = slices.Clone(exampleMembers)
		n.members[1].Reachable, n.members[1].Healthy = false, 0
		start := time.Now()
		golden(t, "cluster/list-not-known-yet", f.run("members", "list", "--node", "a.example:5226").String())
		if took := time.Since(start); took > hearing+askAgain {
			t.Errorf("waited %v", took)
		}
		time.AfterFunc(time.Second, func() { n.setMembers(exampleMembers) })
		if r := f.run("members", "list", "--node", "a.example:5226"); strings.Contains(r.stdout, notYet) {
			t.Errorf("%v", r)
		}
	})
}

// Without a leader list shows what each node says of itself, since that is what
// somebody must know who has to choose.
func TestListWithoutALeader(t *testing.T) {
	for _, form := range []string{"", "-json"} {
		t.Run("form"+form, func(t *testing.T) {
			withCluster(t, func(t *testing.T, f *fakeCluster) {
				for i, id := range []string{"b", "a"} {
					n := f.node(id)
					n.err = control.Ask(control.Peer{})
					n.status = control.Status{Self: control.Peer{ID: id}, Role: control.Candidate, Why: "no leader is known", Term: 9, LastTerm: 9,
						Voters: []string{"a", "b", "c"}, Disk: control.HasState, Last: uint64(812 - i), Commit: 811, Applied: 811}
				}
				args := []string{"members", "list", "--node", "a.example:5226", "--node", "b.example:5226", "--node", "c.example:5226"}
				if form != "" {
					args = append(args, "--json")
				}
				golden(t, "cluster/list-no-leader"+form, f.run(args...).String())
			})
		})
	}
}

// Of several nodes the first that can be reached is asked; if none can, each is named.
func TestNodesThatCannotBeReached(t *testing.T) {
	withCluster(t, func(t *testing.T, f *fakeCluster) {
		f.node("b")
		if r := f.run("members", "promote", "d", "--node", "a.example:5226", "--node", "b.example:5226"); r.code != exitOK {
			t.Errorf("%v", r)
		}
		start := time.Now()
		golden(t, "cluster/error-unreachable", f.run("members", "promote", "d", "--node", "x.example:5226", "--node", "y.example:5226").String())
		golden(t, "cluster/error-unreachable-one", f.run("members", "list", "--node", "x.example:5226").String())
		if took := time.Since(start); took > 0 {
			t.Errorf("waited %v for nodes that are not there", took)
		}
	})
}

// Each reason for which there is no stream has its advice.
func TestAdviceOnStreams(t *testing.T) {
	withCluster(t, func(t *testing.T, f *fakeCluster) {
		var b strings.Builder
		for _, a := range linkAdvice {
			f.unreachable = a.err
			r := f.run("members", "list", "--node", "a.example:5226")
			if r.code != exitError || !strings.Contains(r.stderr, a.todo) {
				t.Errorf("%v: %v", a.err, r)
			}
			b.WriteString(r.stderr + "\n")
		}
		golden(t, "cluster/error-streams", b.String())
		for _, err := range []error{link.ErrRefused, link.ErrRemoved, link.ErrWrongNode, link.ErrVersion, link.ErrUntrusted, link.ErrInsecure} {
			if !slices.ContainsFunc(linkAdvice, func(a struct {
				err  error
				todo string
			}) bool {
				return a.err == err
			}) {
				t.Errorf("no advice on %v", err)
			}
		}
	})
}

// A node's configuration names the nodes: its own by both its addresses, then the
// others.
func TestANodesConfigurationNamesTheNodes(t *testing.T) {
	dir := t.TempDir()
	base := "[cluster]\nnode_id = \"b\"\ndata_dir = \"" + filepath.Join(dir, "data") + "\"\n"
	const members = `members = [{id="a",raft="a.example:5226",client="a.example:5225"},{id="b",raft="b.example:5226",client="b.example:5225"},{id="c",raft="c.example:5226",client="c.example:5225"}]`
	for _, c := range []struct {
		name, text string
		want       []target
	}{
		{"listed", "insecure = true\n" + base + "listen = \":5226\"\n" + members,
			[]target{{"b.example:5226", "b"}, {"127.0.0.1:5226", "b"}, {"a.example:5226", "a"}, {"c.example:5226", "c"}}},
		{"joining", "advertise = \"b.example:5225\"\n" + base + "listen = \"[::1]:5227\"", []target{{"[::1]:5227", "b"}}},
		{"a fault elsewhere", "max_waiters = 0\nadvertise = \"b.example:5225\"\n" + base, []target{{"127.0.0.1:5226", "b"}}},
		{"everywhere", "insecure = true\nadvertise = \"b.example:5225\"\n" + base + "listen = \"[::]:5227\"", []target{{"127.0.0.1:5227", "b"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags := clusterFlags{config: writeFile(t, "ticketing.toml", c.text)}
			cfg, err := flags.clusterConfig(newMembersList(newTestProgram()), newTestProgram())
			if err != nil {
				t.Fatal(err)
			}
			if got := targetsOf(cfg); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	r := ticketing(t, nil, "members", "list", "--config", writeFile(t, "ticketing.toml", "listen = \"127.0.0.1:1\"\n"))
	if r.code != exitUsage || !strings.Contains(r.stderr, "single server") {
		t.Errorf("a single server's: %v", r)
	}
	r = ticketing(t, nil, "members", "list", "--config", writeFile(t, "ticketing.toml", "[cluster]\nnode_id = \"a\"\n"))
	if r.code != exitError || !strings.Contains(r.stderr, "cluster.data_dir") {
		t.Errorf("a faulty one: %v", r)
	}
}
