package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// get returns the status and the body of an answer of an admin server.
func get(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Timeout: patience}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// adminAddr returns the address that a server says it serves metrics on.
func (s *server) adminAddr() string {
	s.t.Helper()
	var serving struct{ Metrics string }
	if err := json.Unmarshal([]byte(s.log.await("serving metrics and health")), &serving); err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(serving.Metrics, "http://"), "/metrics")
}

// has checks that a scrape has all of these lines.
func has(t *testing.T, scrape string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `$`).MatchString(scrape) {
			t.Errorf("the metrics don't have %s", line)
		}
	}
}

// A server shows what it does on its admin address: who scrapes sees an acquire, and
// health says when the server is ready.
func TestMetricsAndHealthAreServed(t *testing.T) {
	s := startServer(t, "--admin-listen", "127.0.0.1:0")
	addr := s.adminAddr()
	for _, path := range []string{"/livez", "/readyz"} {
		if status, body := get(t, addr, path); status != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d, %q", path, status, body)
		}
	}
	takeToken(t, s.env(), "k")
	if r := ticketing(t, s.env(), "acquire", "k", "--wait", "0s"); r.code != exitTimeout {
		t.Errorf("%v", r)
	}
	_, scrape := get(t, addr, "/metrics")
	has(t, scrape,
		`ticketing_acquires_total{outcome="granted"} 1`, `ticketing_acquires_total{outcome="timeout"} 1`,
		`ticketing_keys_held 1`, `ticketing_ready 1`, `ticketing_admission_state{gate="waiters"} 0`)
}

// An address that was chosen for the admin server and is taken is said; one that nobody
// chose is no reason not to serve locks.
func TestATakenAdminAddress(t *testing.T) {
	s := startServer(t, "--admin-listen", "127.0.0.1:0")
	r := ticketing(t, nil, "serve", "--listen", "127.0.0.1:0", "--admin-listen", s.adminAddr())
	if r.code != exitError || !strings.Contains(r.stderr, "already listens on "+s.adminAddr()) || !strings.Contains(r.stderr, "--admin-listen") {
		t.Errorf("%v", r)
	}
	startServer(t)
	startServer(t) // both would have the default address
}

// With a collector named in the environment, the trace of an acquire is there when the
// server has ended.
func TestTracesGoToACollector(t *testing.T) {
	var mu sync.Mutex
	var sent string
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && r.URL.Path == "/v1/traces" {
			sent += string(body)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	s := startServer(t, "--admin-listen", "127.0.0.1:0")
	takeToken(t, s.env(), "the-key-of-a-trace")
	s.signal(syscall.SIGTERM)
	s.wait()
	mu.Lock()
	defer mu.Unlock()
	for _, text := range []string{"acquire", "deliver", "ticketing.key", "the-key-of-a-trace", "granted", "ticketing.owner"} {
		if !strings.Contains(sent, text) {
			t.Errorf("%q was not sent", text)
		}
	}
}

// A collector that hangs does not hold a server up that is told to stop at once.
func TestASecondSignalDoesNotWaitForACollector(t *testing.T) {
	asked, release := make(chan struct{}, 8), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer collector.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_on")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	s := startServer(t, "--admin-listen", "127.0.0.1:0", "--log-level", "debug")
	takeToken(t, s.env(), "k")
	<-asked
	deafen(t, s.addr) // the drain waits for this client
	s.signal(syscall.SIGTERM)
	s.log.await(`"msg":"stopping"`)
	s.signal(syscall.SIGINT)
	if code := s.wait(); code != exitError {
		t.Errorf("exit code %d", code)
	}
	s.log.await("a second signal ended the server")
	if strings.Contains(s.log.String(), "not everything that was measured was told") {
		t.Error("it waited for the collector")
	}
}

// The hash of the configuration is that of the one in use, after a reload too.
func TestTheConfigurationsHashFollowsAReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ticketing.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log_level = \"info\"\n")
	s := startServer(t, "--admin-listen", "127.0.0.1:0", "--config", file)
	hash := func() string {
		_, scrape := get(t, s.adminAddr(), "/metrics")
		return regexp.MustCompile(`ticketing_config_info\{hash="([0-9a-f]+)"\} 1`).FindString(scrape)
	}
	before := hash()
	write("log_level = \"debug\"\n")
	s.signal(syscall.SIGHUP)
	s.log.await("configuration reloaded")
	eventually(t, "another hash", func() bool { now := hash(); return now != "" && now != before })
	if before == "" {
		t.Error("there was no hash")
	}
}

// A variable of OpenTelemetry that is not understood is said, and holds no server up.
func TestAVariableThatIsNotUnderstood(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "sometimes")
	s := startServer(t, "--admin-listen", "127.0.0.1:0")
	s.log.await("OTEL_TRACES_SAMPLER")
	takeToken(t, s.env(), "k")
}

// Without a collector, the traces of slow acquires are on the standard output.
func TestTracesOnTheStandardOutput(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "console")
	s := startServer(t, "--admin-listen", "127.0.0.1:0", "--trace-slow", "100ms")
	takeToken(t, s.env(), "order\u202e42")
	if r := ticketing(t, s.env(), "acquire", "order\u202e42", "--wait", "1s"); r.code != exitTimeout {
		t.Fatalf("%v", r)
	}
	s.out.await("timeout after 1.0")
	s.out.await(`ticketing.key="order\u202e42"`)
}
