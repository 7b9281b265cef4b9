//go:build e2e

package dashboards

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// cluster is the nodes that are scraped: three, or a single server.
type cluster struct {
	t       *testing.T
	program string
	token   string   // file of the clients' token
	clients []string // addresses
	admin   []string
}

// limits are small enough to be reached.
var limits = []string{"MAX_TOTAL_WAITERS=40", "TRACE_SAMPLE=1", "OTEL_TRACES_EXPORTER=none"}

// startSingle starts a single server.
func startSingle(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	port := freePorts(t, 0, 1)
	c := &cluster{t: t, program: build(t, dir, "ticketing"), token: filepath.Join(dir, "client-token"), clients: []string{loopback(port)}, admin: []string{loopback(port + 1)}}
	if err := os.WriteFile(c.token, []byte("the-token-of-the-clients\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(c.program, "serve")
	cmd.Env = append(append(os.Environ(), limits...), "LISTEN="+c.clients[0], "ADMIN_LISTEN="+c.admin[0], "CLIENT_TOKENS_FILE="+c.token)
	run(t, cmd, os.Interrupt)
	return c
}

// build compiles a program of this module.
func build(t *testing.T, dir, name string) (program string) {
	t.Helper()
	program = filepath.Join(dir, name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// startCluster starts a cluster of three and returns when it serves.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "cluster")
	c := &cluster{t: t, program: build(t, dir, "ticketing"), token: filepath.Join(data, "client-token")}
	// How devcluster counts its nodes' ports.
	port := freePorts(t, 0, 1, 55, 10, 11, 65, 20, 21, 75)
	for node := range 3 {
		c.clients = append(c.clients, loopback(port+10*node))
		c.admin = append(c.admin, loopback(port+55+10*node))
	}
	cmd := exec.Command(build(t, dir, "devcluster"), "-dir", data, "-program", c.program, "-port", fmt.Sprint(port))
	cmd.Env = append(append(os.Environ(), limits...), "CLUSTER_SNAPSHOT_THRESHOLD=64", "CLUSTER_SNAPSHOT_INTERVAL=1s")
	if _, err := cmd.StdinPipe(); err != nil { // it ends when there is nobody to type
		t.Fatal(err)
	}
	log := run(t, cmd, os.Interrupt)
	eventually(t, func() string {
		if text := log.String(); !strings.Contains(text, "export TICKETING_ADDR=") {
			return "the cluster does not serve:\n" + text
		}
		return ""
	})
	return c
}

// kill ends a node, named by its admin address, as a failing machine would.
func (c *cluster) kill(admin string) {
	c.t.Helper()
	file := filepath.Join(filepath.Dir(c.token), fmt.Sprintf("n%d.pid", slices.Index(c.admin, admin)+1))
	pid, err := strconv.Atoi(strings.TrimSpace(read(c.t, file)))
	if err != nil {
		c.t.Fatal(err)
	}
	node, err := os.FindProcess(pid)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := node.Kill(); err != nil {
		c.t.Fatal(err)
	}
}

// command is the program with the environment of a client.
func (c *cluster) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), c.program, args...)
	cmd.Env = append(os.Environ(), "TICKETING_ADDR="+strings.Join(c.clients, ","), "TICKETING_TOKEN_FILE="+c.token)
	return cmd
}

// load has clients wait, time out, be refused, lose their leases, release too late and fail
// to shake hands, until the test ends.
func (c *cluster) load() {
	run(c.t, c.command("bench", "--workers", "64", "--keys", "4", "--connections", "8", "--hold", "2ms", "--wait", "1s", "--duration", "10m"), os.Kill)
	stranger := filepath.Join(c.t.TempDir(), "token")
	if err := os.WriteFile(stranger, []byte("nobody-knows-this-token\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	var clients sync.WaitGroup
	clients.Go(func() {
		for n := 0; c.t.Context().Err() == nil; n++ {
			key := fmt.Sprint("forgotten-", n)
			token, err := c.command("acquire", key, "--lease", "1s").Output()
			if err != nil {
				continue // busy: that is what the load is for
			}
			c.command("acquire", key, "--wait", "0s").Run()
			time.Sleep(1200 * time.Millisecond)
			c.command("release", key, strings.TrimSpace(string(token))).Run()
			refused := c.command("acquire", key, "--wait", "0s")
			refused.Env = append(refused.Env, "TICKETING_TOKEN_FILE="+stranger)
			refused.Run()
		}
	})
	c.t.Cleanup(clients.Wait)
}
