//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/client"
	"github.com/ticketing-io/ticketing/core/wire"
)

// Clusters of real processes, each with its data on a disk that it syncs. They take
// minutes, so they are behind the build tag e2e, which make test sets.

// clusterNode is a node of a cluster: where it is and, while it runs, its process.
type clusterNode struct {
	id, dir             string
	client, raft, admin string // addresses
	flags               []string
	wrap                []string // a command that runs the program, in place of the program itself
	cmd                 *exec.Cmd
	log                 *lines
}

// testCluster is a cluster, and the spare nodes that are in no list of members.
type testCluster struct {
	t     *testing.T
	nodes []*clusterNode
}

// layOut makes a cluster of which nothing runs yet. Every node gets the same flags.
func layOut(t *testing.T, size, spares int, flags ...string) *testCluster {
	t.Helper()
	c := &testCluster{t: t}
	ports := quietPorts(t, 3*(size+spares))
	dir := t.TempDir()
	var members []string
	for i := range size + spares {
		n := &clusterNode{
			id: fmt.Sprintf("n%d", i+1), client: ports[3*i], raft: ports[3*i+1], admin: ports[3*i+2],
		}
		n.dir = filepath.Join(dir, n.id)
		if i < size {
			members = append(members, n.id+"="+n.raft+"="+n.client)
		}
		c.nodes = append(c.nodes, n)
	}
	for i, n := range c.nodes {
		n.flags = []string{"--cluster-node-id", n.id, "--cluster-data-dir", n.dir, "--cluster-listen", n.raft,
			"--listen", n.client, "--admin-listen", n.admin, "--log-format", "json"}
		if i < size {
			n.flags = append(n.flags, "--cluster-members", strings.Join(members, ","))
		} else {
			n.flags = append(n.flags, "--advertise", n.client)
		}
		n.flags = append(n.flags, flags...)
	}
	return c
}

// startCluster starts a cluster and returns when it has a leader.
func startCluster(t *testing.T, size, spares int, flags ...string) *testCluster {
	t.Helper()
	c := layOut(t, size, spares, flags...)
	for _, n := range c.nodes[:size] {
		c.start(n)
	}
	for _, n := range c.nodes[:size] {
		c.awaitReady(n)
	}
	return c
}

// quietPorts returns loopback addresses that are free, outside of the range from
// which the kernel takes ports for connections: a node that is down must find its
// own again, and whoever dials it must not end up talking to itself.
func quietPorts(t *testing.T, n int) (addrs []string) {
	t.Helper()
	const lowest, highest = 20000, 32000
	port := lowest + int(time.Now().UnixNano()/1000)%(highest-lowest)
	for tries := 0; len(addrs) < n; tries++ {
		if tries > highest-lowest {
			t.Fatal("no free ports")
		}
		if port++; port >= highest {
			port = lowest
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// start starts a node's process, on the data that it has.
func (c *testCluster) start(n *clusterNode) {
	c.t.Helper()
	n.cmd = programCommand(nil, append([]string{"serve"}, n.flags...)...)
	if len(n.wrap) > 0 {
		path, err := exec.LookPath(n.wrap[0])
		if err != nil {
			c.t.Fatal(err)
		}
		n.cmd.Path, n.cmd.Args = path, append(append([]string{}, n.wrap...), n.cmd.Args...)
	}
	n.log = readLines(c.t, &n.cmd.Stderr)
	if err := n.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	cmd, log := n.cmd, n.log
	c.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("%s, pid %d, logged:\n%s", n.id, cmd.Process.Pid, log)
		}
	})
}

// kill ends a node as a crash does.
func (c *testCluster) kill(n *clusterNode) {
	c.t.Helper()
	n.cmd.Process.Kill()
	n.cmd.Wait()
	n.cmd = nil
}

// stop tells a node to stop and waits for its end.
func (c *testCluster) stop(n *clusterNode) {
	c.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if code := waitExit(c.t, n.cmd); code != exitOK {
		c.t.Errorf("%s ended with exit code %d:\n%s", n.id, code, n.log)
	}
	n.cmd = nil
}

// leaderAsToldBy asks a node who leads, by its ready frame.
func leaderAsToldBy(addr string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second)) // a node that is stopped says nothing
	in := bufio.NewReader(conn)
	challenge, err := in.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	nonce, err := wire.ParseChallenge(bytes.TrimSuffix(challenge, []byte("\n")))
	if err != nil {
		return "", err
	}
	digest := wire.Digest(nil, nonce)
	if _, err := conn.Write(append(digest[:], '\n')); err != nil {
		return "", err
	}
	ready, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if ready[0] != byte(wire.OpLeader) {
		return "", fmt.Errorf("the ready frame is %q", ready)
	}
	return strings.TrimSuffix(ready[1:], "\n"), nil
}

// leader returns the node that leads and serves: it says so itself.
func (c *testCluster) leader() *clusterNode {
	c.t.Helper()
	var found *clusterNode
	eventually(c.t, "a leader", func() bool {
		for _, n := range c.nodes {
			if n.cmd == nil {
				continue
			}
			if addr, err := leaderAsToldBy(n.client); err == nil && addr == n.client {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// awaitReady returns when a node serves, or knows who does.
func (c *testCluster) awaitReady(n *clusterNode) {
	c.t.Helper()
	eventually(c.t, n.id+" knowing a leader", func() bool {
		_, err := leaderAsToldBy(n.client)
		return err == nil
	})
}

// others returns the nodes that run, without one.
func (c *testCluster) others(but *clusterNode) (list []*clusterNode) {
	for _, n := range c.nodes {
		if n != but && n.cmd != nil {
			list = append(list, n)
		}
	}
	return list
}

// addrs are the client addresses of all nodes, spares aside unless they run.
func (c *testCluster) addrs() (addrs []string) {
	for _, n := range c.nodes {
		if n.cmd != nil {
			addrs = append(addrs, n.client)
		}
	}
	return addrs
}

// env has the client commands ask all nodes that run.
func (c *testCluster) env() []string {
	return []string{"TICKETING_ADDR=" + strings.Join(c.addrs(), ",")}
}

// broker connects to all nodes that run, and closes with the test.
func (c *testCluster) broker() *client.Broker {
	c.t.Helper()
	b, err := client.New(client.Config{Addrs: c.addrs()})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { b.Close() })
	return b
}

// take acquires a key once there is a leader, and returns its token. A node that hands its
// leadership over, or loses it on a busy machine, says busy meanwhile, and has granted nothing.
func (c *testCluster) take(key string, lease time.Duration) uint64 {
	c.t.Helper()
	var r result
	eventually(c.t, "a leader that grants "+key, func() bool {
		c.leader()
		r = ticketing(c.t, c.env(), "acquire", key, "--lease", lease.String(), "--wait", "20s")
		return r.code != exitBusy
	})
	if r.code != exitOK {
		c.t.Fatalf("acquire %s: %v", key, r)
	}
	return number(c.t, strings.TrimSpace(r.stdout))
}

// isHeld tells whether an immediate attempt finds a key held. One that finds it free
// leaves it held.
func (c *testCluster) isHeld(key string) bool {
	c.t.Helper()
	c.leader()
	r := ticketing(c.t, c.env(), "acquire", key, "--wait", "0s")
	if r.code != exitOK && r.code != exitTimeout {
		c.t.Fatalf("an attempt at %s: %v", key, r)
	}
	return r.code == exitTimeout
}

// operate runs an operator's command against a node.
func (c *testCluster) operate(n *clusterNode, args ...string) result {
	c.t.Helper()
	return ticketing(c.t, nil, append(args, "--node", n.raft)...)
}

// mustOperate runs an operator's command until it is not refused for being too
// early, or not answered because the leader has just changed.
func (c *testCluster) mustOperate(n *clusterNode, args ...string) {
	c.t.Helper()
	var last result
	eventually(c.t, strings.Join(args, " "), func() bool {
		last = c.operate(n, args...)
		if last.code != exitOK {
			time.Sleep(200 * time.Millisecond)
		}
		return last.code == exitOK
	})
}

// listedMember is what members list tells of one.
type listedMember struct {
	ID        string
	Voter     bool
	Leader    bool
	Reachable bool
	Healthy   bool
}

// members lists the members, by id.
func (c *testCluster) members(n *clusterNode) (map[string]listedMember, error) {
	c.t.Helper()
	r := c.operate(n, "members", "list", "--json")
	if r.code != exitOK {
		return nil, errors.New(r.String())
	}
	var list struct{ Members []listedMember }
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		c.t.Fatalf("%v: %v", err, r)
	}
	members := map[string]listedMember{}
	for _, m := range list.Members {
		members[m.ID] = m
	}
	return members, nil
}

// awaitMembers returns when the members are as they should be.
func (c *testCluster) awaitMembers(n *clusterNode, what string, right func(map[string]listedMember) bool) {
	c.t.Helper()
	eventually(c.t, what, func() bool {
		members, err := c.members(n)
		return err == nil && right(members)
	})
}

// needsRoot skips a test that needs root or a tool that is missing; with CI set it
// fails instead.
func needsRoot(t *testing.T, tools ...string) {
	t.Helper()
	missing := ""
	if os.Geteuid() != 0 {
		missing = "root"
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = tool
		}
	}
	switch {
	case missing == "":
	case os.Getenv("CI") != "":
		t.Fatalf("needs %s", missing)
	default:
		t.Skipf("needs %s", missing)
	}
}
