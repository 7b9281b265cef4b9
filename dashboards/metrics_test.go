package dashboards

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// panel is what these tests read of a panel.
type panel struct {
	dashboard string // its file
	page      string // the dashboard's title, without the product's name
	title     string
	exprs     []string
}

// panels returns the panels of all embedded dashboards.
func panels(t *testing.T) (list []panel) {
	t.Helper()
	files, err := fs.Glob(Files, "grafana/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("dashboards %v, %v", files, err)
	}
	for _, file := range files {
		text, err := Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Title  string
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			one := panel{dashboard: file, page: strings.TrimPrefix(d.Title, "Ticketing / "), title: p.Title}
			for _, target := range p.Targets {
				one.exprs = append(one.exprs, target.Expr)
			}
			list = append(list, one)
		}
	}
	return list
}

// ask puts values in the place of Grafana's variables.
func ask(expr, window string) string {
	return strings.NewReplacer("$job", "ticketing", "$instance", ".*", "$__rate_interval", window).Replace(expr)
}

// metric is a row of docs/METRICS.md.
type metric struct {
	kind   string
	labels map[string][]string // the values that a label may have; nil for any
}

// documented returns the metrics of docs/METRICS.md, which is compared with the program.
func documented(t *testing.T) map[string]metric {
	t.Helper()
	label := regexp.MustCompile("`(\\w+)`(?:: ([^;|]*))?")
	all := make(map[string]metric)
	for line := range strings.Lines(read(t, "../docs/METRICS.md")) {
		cells := strings.Split(line, " | ")
		name := strings.Trim(cells[0], "| `")
		if !strings.HasPrefix(line, "| `ticketing_") || len(cells) < 3 {
			continue
		}
		m := metric{cells[1], make(map[string][]string)}
		for _, l := range label.FindAllStringSubmatch(cells[2], -1) {
			m.labels[l[1]] = nil
			if l[2] != "" {
				m.labels[l[1]] = strings.Split(strings.TrimSpace(l[2]), ", ")
			}
		}
		all[name] = m
	}
	if len(all) < 50 {
		t.Fatalf("%d metrics in the document", len(all))
	}
	return all
}

// added are the labels that Prometheus adds to what it scrapes.
var added = []string{"job", "instance"}

var (
	name     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	selector = regexp.MustCompile(`(ticketing_\w+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
)

// unknown returns what an expression asks for that no node has: metrics, labels, and
// values of labels.
func unknown(expr string, has map[string]metric) (found []string) {
	family := func(series string) (metric, bool) {
		if m, ok := has[series]; ok {
			return m, m.kind != "histogram" // a histogram is its three kinds of series
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if m, ok := has[strings.TrimSuffix(series, suffix)]; ok && m.kind == "histogram" && strings.HasSuffix(series, suffix) {
				return m, true
			}
		}
		return metric{}, false
	}
	for _, series := range name.FindAllString(expr, -1) {
		if strings.HasPrefix(series, "ticketing_") {
			if _, ok := family(series); !ok {
				found = append(found, series)
			}
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		m, _ := family(s[1])
		for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
			values, ok := m.labels[l[1]]
			if slices.Contains(added, l[1]) {
				continue
			}
			if !ok {
				found = append(found, s[1]+"'s label "+l[1])
			}
			for _, value := range strings.Split(l[3], "|") {
				if values != nil && !slices.Contains(values, value) {
					found = append(found, fmt.Sprintf("%s{%s=%q}", s[1], l[1], value))
				}
			}
		}
	}
	return found
}

func TestEveryMetricOfADashboardExists(t *testing.T) {
	has := documented(t)
	for _, p := range panels(t) {
		for _, expr := range p.exprs {
			for _, what := range unknown(expr, has) {
				t.Errorf("%s: %s: no node has %s", p.dashboard, p.title, what)
			}
		}
	}
}

func TestEveryMetricOfARuleExists(t *testing.T) {
	has := documented(t)
	text := read(t, rulesFile)
	recorded := make(map[string]bool)
	for _, m := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(text, -1) {
		recorded[m[1]] = true
	}
	// What is between an expr and the next key; names of groups and alerts are no metrics.
	exprs := regexp.MustCompile(`(?s)\n +expr: (.*?)\n +(?:for|labels|- record|- alert|- name):`).FindAllStringSubmatch(text+"\n  - name:", -1)
	if len(exprs) != strings.Count(text, " expr: ") {
		t.Fatalf("read %d expressions of %d", len(exprs), strings.Count(text, " expr: "))
	}
	used := make(map[string]bool)
	for _, m := range exprs {
		for _, what := range unknown(m[1], has) {
			t.Errorf("%s: no node has %s", m[1], what)
		}
		for _, series := range name.FindAllString(m[1], -1) {
			if strings.Contains(series, ":") {
				used[series] = true
			}
		}
	}
	if !maps.Equal(recorded, used) {
		t.Errorf("recorded: %v\nused: %v", recorded, used)
	}
}

func TestWhatNoNodeHasIsFound(t *testing.T) {
	has := documented(t)
	for expr, want := range map[string]int{
		`sum(rate(ticketing_acquires_total{job="$job",outcome="granted"}[5m]))`:            0,
		`ticketing_acquire_wait_seconds_bucket{outcome=~"granted|timeout"}`:                0,
		`ticketing_raft_peer_lag_entries{peer="n7"}`:                                       0,
		`ticketing_acquired_total`:                                                         1,
		`ticketing_acquire_wait_seconds`:                                                   1,
		`ticketing_keys_held_bucket`:                                                       1,
		`ticketing_acquires_total{outcome="won"}`:                                          1,
		`ticketing_acquires_total{result="granted"}`:                                       1,
		`ticketing_admission_refusals_total{reason=~"closed|full"} / ticketing_keys_taken`: 2,
	} {
		if found := unknown(expr, has); len(found) != want {
			t.Errorf("%s: found %v, want %d", expr, found, want)
		}
	}
}

// Prometheus parses every expression of every panel: each is made a rule for it to check.
func TestPrometheusParsesEveryPanel(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: panels\n    rules:\n")
	n := 0
	for _, p := range panels(t) {
		for _, expr := range p.exprs {
			n++
			fmt.Fprintf(&rules, "      - record: panel_%d\n        expr: %q\n", n, ask(expr, "1m"))
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := promtool(t, "check", "rules", file); err != nil || !strings.Contains(said, fmt.Sprintf("%d rules found", n)) {
		t.Errorf("%d expressions: %v\n%s", n, err, said)
	}
}
