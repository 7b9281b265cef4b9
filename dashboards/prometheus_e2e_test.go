//go:build e2e

package dashboards

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// tick is how often Prometheus scrapes and evaluates here, in place of every 15 s, and
	// how long alerts wait.
	tick = "1s"
	// rateWindow stands for Grafana's $__rate_interval.
	rateWindow = "8s"
)

// needPrometheus skips a test where there is no Prometheus; where CI is set it must be there.
func needPrometheus(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("prometheus is not installed (Debian's package prometheus)")
	}
	t.Skip("prometheus is not installed (Debian's package prometheus)")
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
	rules := regexp.MustCompile(`(interval|for): \d+[sm]`).ReplaceAllString(read(t, rulesFile), "$1: "+tick)
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

// sample is one series that a query returns.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// ask returns what a query returns now. A query that is at fault ends the test.
func (p *prometheus) ask(expr string) []sample {
	p.t.Helper()
	var data struct{ Result []sample }
	if err := p.get("/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return data.Result
}

// hasData tells whether a query returns a number.
func (p *prometheus) hasData(expr string) bool {
	p.t.Helper()
	return slices.ContainsFunc(p.ask(expr), func(s sample) bool { return s.Value[1] != "NaN" })
}

// value is what a query returns first, "nothing" when there is none.
func (p *prometheus) value(expr string) string {
	p.t.Helper()
	for _, s := range p.ask(expr) {
		return fmt.Sprint(s.Value[1])
	}
	return "nothing"
}

// labelOf returns a label of what a query returns first.
func (p *prometheus) labelOf(name, expr string) string {
	p.t.Helper()
	for _, s := range p.ask(expr) {
		return s.Metric[name]
	}
	p.t.Fatalf("nothing: %s", expr)
	return ""
}

// firing returns the names of the alerts that fire, those aside that only inform.
func (p *prometheus) firing() (names []string) {
	p.t.Helper()
	for _, s := range p.ask(`ALERTS{alertstate="firing",severity!="info"}`) {
		names = append(names, s.Metric["alertname"])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// awaitData returns when every query of these panels has data.
func (p *prometheus) awaitData(of []panel) {
	p.t.Helper()
	missing := make(map[string]string) // what a query lacks, by panel and query
	for _, one := range of {
		if len(one.exprs) == 0 {
			p.t.Errorf("%s: %s asks nothing", one.dashboard, one.title)
		}
		for _, expr := range one.exprs {
			missing[one.dashboard+": "+one.title+"\n"+expr] = ask(expr, rateWindow)
		}
	}
	eventually(p.t, func() string {
		for place, expr := range missing {
			if p.hasData(expr) {
				delete(missing, place)
			}
		}
		return strings.Join(slices.Sorted(maps.Keys(missing)), "\n")
	})
}

// awaitAlerts returns when these alerts fire, and none that tells of a node or of the
// cluster as a whole.
func (p *prometheus) awaitAlerts(expected ...string) {
	p.t.Helper()
	ofNodes := []string{"TicketingScrapeDown", "TicketingAllDown", "TicketingNotReady", "TicketingNoLeader", "TicketingQuorumAtRisk", "TicketingSnapshotFailing"}
	eventually(p.t, func() string {
		names := p.firing()
		missing := func(name string) bool { return !slices.Contains(names, name) }
		wrong := func(name string) bool { return slices.Contains(ofNodes, name) && !slices.Contains(expected, name) }
		if slices.ContainsFunc(expected, missing) || slices.ContainsFunc(names, wrong) {
			return fmt.Sprintf("the alerts that fire: %v, want %v", names, expected)
		}
		return ""
	})
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
