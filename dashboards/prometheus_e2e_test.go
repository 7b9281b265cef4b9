//go:build e2e

package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// patience bounds every wait for something that must come.
	patience = 90 * time.Second
	// tick is how often Prometheus scrapes and evaluates here, in place of every 15 s.
	tick = "1s"
	// rateWindow stands for Grafana's $__rate_interval.
	rateWindow = "8s"
	// stopTime is how long a cluster may take to drain.
	stopTime = 20 * time.Second
)

// Prometheus, as it is provisioned, scrapes three nodes under load: then every query of
// every panel has data, every rule evaluates, the variables find the nodes, and waits have
// exemplars that lead to a trace.
func TestARealPrometheusHasDataForEveryPanel(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("prometheus is not installed (Debian's package prometheus)")
		}
		t.Skip("prometheus is not installed (Debian's package prometheus)")
	}
	c := startCluster(t)
	p := startPrometheus(t, c.admin)
	c.load()

	missing := make(map[string]string) // what a query lacks, by panel and query
	for _, one := range panels(t) {
		if len(one.exprs) == 0 {
			t.Errorf("%s: %s asks nothing", one.dashboard, one.title)
		}
		for _, expr := range one.exprs {
			missing[one.dashboard+": "+one.title+"\n"+expr] = ask(expr, rateWindow)
		}
	}
	eventually(t, func() string {
		for place, expr := range missing {
			if p.hasData(expr) {
				delete(missing, place)
			}
		}
		var places []string
		for place := range missing {
			places = append(places, place)
		}
		slices.Sort(places)
		return strings.Join(places, "\n")
	})
	eventually(t, func() string { return p.unhealthyRules(len(alerts(t))) })
	eventually(t, func() string {
		if nodes := p.labels("instance", `ticketing_build_info{job="ticketing"}`); len(nodes) != len(c.admin) {
			return fmt.Sprintf("the variable instance offers %v", nodes)
		}
		return ""
	})
	eventually(t, func() string {
		if !p.hasExemplars(`ticketing_acquire_wait_seconds_bucket{outcome="granted"}`) {
			return "no wait has an exemplar with a trace"
		}
		return ""
	})
}

// cluster is three nodes on this machine.
type cluster struct {
	t       *testing.T
	program string
	dir     string
	clients []string // addresses
	admin   []string
}

// startCluster starts a cluster whose limits are small enough to be reached, and returns
// when it serves.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{t: t, program: filepath.Join(dir, "ticketing"), dir: filepath.Join(dir, "cluster")}
	devcluster := filepath.Join(dir, "devcluster")
	for program, source := range map[string]string{c.program: "../cmd/ticketing", devcluster: "../cmd/devcluster"} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	// How devcluster counts its nodes' ports.
	port := freePorts(t, 0, 1, 55, 10, 11, 65, 20, 21, 75)
	for node := range 3 {
		c.clients = append(c.clients, loopback(port+10*node))
		c.admin = append(c.admin, loopback(port+55+10*node))
	}
	cmd := exec.Command(devcluster, "-dir", c.dir, "-program", c.program, "-port", fmt.Sprint(port))
	cmd.Env = append(os.Environ(), "MAX_TOTAL_WAITERS=40", "TRACE_SAMPLE=1", "OTEL_TRACES_EXPORTER=none",
		"CLUSTER_SNAPSHOT_THRESHOLD=64", "CLUSTER_SNAPSHOT_INTERVAL=1s")
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

// command is the program with the environment of a client.
func (c *cluster) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), c.program, args...)
	cmd.Env = append(os.Environ(), "TICKETING_ADDR="+strings.Join(c.clients, ","), "TICKETING_TOKEN_FILE="+filepath.Join(c.dir, "client-token"))
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

// prometheus is a running Prometheus.
type prometheus struct {
	t    *testing.T
	addr string
}

// startPrometheus starts one with the provisioned configuration, only faster and with these
// targets.
func startPrometheus(t *testing.T, targets []string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := strings.ReplaceAll(read(t, "provisioning/prometheus.yml"), "15s", tick)
	const target = "          - 127.0.0.1:5280"
	if !strings.Contains(config, target) {
		t.Fatal("the provisioned target is not where it was")
	}
	config = strings.Replace(config, target, "          - "+strings.Join(targets, "\n          - "), 1)
	rules := strings.ReplaceAll(read(t, rulesFile), "interval: 15s", "interval: "+tick)
	for file, text := range map[string]string{"prometheus.yml": config, "ticketing.rules.yml": rules} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &prometheus{t, loopback(freePorts(t, 0))}
	log := run(t, exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.addr, "--enable-feature=exemplar-storage", "--log.level=warn"), os.Interrupt)
	eventually(t, func() string {
		if err := p.get("/api/v1/status/runtimeinfo", nil, nil); err != nil {
			return fmt.Sprintf("prometheus does not answer: %v\n%s", err, log)
		}
		return ""
	})
	return p
}

// get asks the API.
func (p *prometheus) get(path string, query url.Values, data any) error {
	client := http.Client{Timeout: patience}
	resp, err := client.Get("http://" + p.addr + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return json.Unmarshal(body, &struct{ Data any }{data})
}

// hasData tells whether a query returns a number. A query that is at fault ends the test.
func (p *prometheus) hasData(expr string) bool {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get("/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// unhealthyRules says which rules could not be evaluated, or were not yet.
func (p *prometheus) unhealthyRules(alerts int) string {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Type, Health, LastError string }
		}
	}
	if err := p.get("/api/v1/rules", nil, &data); err != nil {
		p.t.Fatal(err)
	}
	var faults []string
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Type == "alerting" {
				alerts--
			}
			if r.Health != "ok" {
				faults = append(faults, fmt.Sprintf("%s: %s %s", r.Name, r.Health, r.LastError))
			}
		}
	}
	if alerts != 0 {
		faults = append(faults, fmt.Sprintf("%d alerts are not there", alerts))
	}
	return strings.Join(faults, "\n")
}

// labels returns the values that a label of some series has.
func (p *prometheus) labels(name, series string) (values []string) {
	p.t.Helper()
	if err := p.get("/api/v1/label/"+name+"/values", url.Values{"match[]": {series}}, &values); err != nil {
		p.t.Fatal(err)
	}
	return values
}

// hasExemplars tells whether some series has an exemplar with the id of a trace.
func (p *prometheus) hasExemplars(series string) bool {
	p.t.Helper()
	var data []struct {
		Exemplars []struct{ Labels map[string]string }
	}
	now := time.Now()
	query := url.Values{"query": {series}, "start": {fmt.Sprint(now.Add(-time.Hour).Unix())}, "end": {fmt.Sprint(now.Unix() + 1)}}
	if err := p.get("/api/v1/query_exemplars", query, &data); err != nil {
		p.t.Fatal(err)
	}
	return len(data) > 0 && len(data[0].Exemplars) > 0 && len(data[0].Exemplars[0].Labels["trace_id"]) == 32
}

// output is what a process has written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run starts a process that gets a signal when the test ends, a second one when it does
// not heed it, and is killed at last.
func run(t *testing.T, cmd *exec.Cmd, end os.Signal) *output {
	t.Helper()
	log := new(output)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		for _, sig := range []os.Signal{end, end, os.Kill} {
			cmd.Process.Signal(sig)
			select {
			case <-ended:
				return
			case <-time.After(stopTime):
				t.Errorf("%s did not end by %v", filepath.Base(cmd.Path), sig)
			}
		}
	})
	return log
}

// freePorts returns a port that is free, as are those so far from it. It is outside of the
// range from which the kernel takes ports for connections.
func freePorts(t *testing.T, offsets ...int) int {
	t.Helper()
	const lowest, highest, step = 20000, 32000, 97
	begin := int(time.Now().UnixNano()/1000) % (highest - lowest)
	for i := range (highest - lowest) / step {
		port := lowest + (begin+i*step)%(highest-lowest)
		if !slices.ContainsFunc(offsets, func(offset int) bool { return !free(port + offset) }) {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

// eventually returns when nothing is missing any more.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v:\n%s", patience, what)
		}
	}
}
