package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// strict reads a dashboard with Grafana's schema: a field that the schema does not know is a
// fault. The SDK returns an error without text when there is none, and leaves panels out
// then, so it only checks, and what it checked is read once more.
func strict(text []byte) (d board, err error) {
	plugins.RegisterDefaultPlugins()
	var checked board
	if err := checked.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}

// committed reads the dashboards that are there.
func committed(t *testing.T) map[string]board {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	read := make(map[string]board)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := strict(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		read[filepath.Base(file)] = d
	}
	return read
}

// panels returns a dashboard's panels, without the headings.
func panels(d board) (list []*dashboard.Panel) {
	for _, p := range d.Panels {
		if p.Panel != nil {
			list = append(list, p.Panel)
		}
	}
	return list
}

func TestTheCommittedDashboardsAreWhatIsGenerated(t *testing.T) {
	generated := all()
	for name := range committed(t) {
		if _, ok := generated[name]; !ok {
			t.Errorf("%s is not generated", name)
		}
	}
	for name, d := range generated {
		want, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated: go generate in dashboards", name)
		}
	}
}

func TestAFieldThatGrafanaDoesNotKnowIsFound(t *testing.T) {
	for _, place := range []string{`"refresh"`, `"gridPos"`, `"graphMode"`, `"expr"`, `"drawStyle"`} {
		text, err := encode(overview())
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Replace(text, []byte(place), []byte(`"unheardOf": 1, `+place), 1)
		if _, err := strict(changed); err == nil {
			t.Errorf("a field beside %s that nobody knows was taken", place)
		}
	}
}

func TestDashboardsAndPanelsHaveTheirOwnNames(t *testing.T) {
	seen := make(map[string]string)
	for name, d := range committed(t) {
		for _, key := range []string{"uid " + *d.Uid, "title " + *d.Title} {
			if seen[key] != "" {
				t.Errorf("%s and %s have the same %s", name, seen[key], key)
			}
			seen[key] = name
		}
		var ids []uint32
		var titles []string
		for _, p := range d.Panels {
			if p.RowPanel != nil {
				ids = append(ids, p.RowPanel.Id)
				continue
			}
			ids, titles = append(ids, *p.Panel.Id), append(titles, *p.Panel.Title)
		}
		slices.Sort(ids)
		slices.Sort(titles)
		if len(slices.Compact(ids)) != len(d.Panels) || ids[0] == 0 {
			t.Errorf("%s: the panels' ids are not unique", name)
		}
		if n := len(titles); len(slices.Compact(titles)) != n {
			t.Errorf("%s: two panels have the same title", name)
		}
	}
}

func TestNoPanelLiesUponAnother(t *testing.T) {
	for name, d := range committed(t) {
		taken := make(map[[2]uint32]uint32)
		for _, p := range d.Panels {
			var id uint32
			var at *dashboard.GridPos
			if p.RowPanel != nil {
				id, at = p.RowPanel.Id, p.RowPanel.GridPos
			} else {
				id, at = *p.Panel.Id, p.Panel.GridPos
			}
			if at.W == 0 || at.H == 0 || at.X+at.W > columns {
				t.Errorf("%s: panel %d is at %+v", name, id, *at)
			}
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other := taken[[2]uint32{x, y}]; other != 0 {
						t.Fatalf("%s: panels %d and %d overlap", name, id, other)
					}
					taken[[2]uint32{x, y}] = id
				}
			}
		}
	}
}

func TestEveryPanelSaysWhatItShows(t *testing.T) {
	for name, d := range committed(t) {
		if *d.Description == "" {
			t.Errorf("%s: no description", name)
		}
		for _, p := range panels(d) {
			of := p.FieldConfig.Defaults
			switch {
			case p.Title == nil || *p.Title == "":
				t.Errorf("%s: panel %d has no title", name, *p.Id)
			case p.Description == nil || !strings.HasSuffix(*p.Description, "."):
				t.Errorf("%s: %s: no sentence says what it shows", name, *p.Title)
			case of.Unit == nil || *of.Unit == "":
				t.Errorf("%s: %s: no unit", name, *p.Title)
			case of.Thresholds == nil || len(of.Thresholds.Steps) == 0 || of.Thresholds.Steps[0].Value != nil:
				t.Errorf("%s: %s: no thresholds", name, *p.Title)
			case of.NoValue == nil:
				t.Errorf("%s: %s: nothing is said when there is no data", name, *p.Title)
			}
			for i, step := range of.Thresholds.Steps[1:] {
				if before := of.Thresholds.Steps[i].Value; before != nil && *before >= *step.Value {
					t.Errorf("%s: %s: thresholds that do not rise", name, *p.Title)
				}
			}
		}
	}
}

// ofTheCluster are known to the node that leads, or to Prometheus: of a follower alone they
// would say that there is no leader, and no majority.
var ofTheCluster = []string{
	"ALERTS", "ticketing_raft_serving", "ticketing_raft_healthy_voters", "ticketing_raft_voters", "ticketing_raft_quorum", "ticketing_raft_peer_lag_entries",
}

// checkSelectors finds what is not of the chosen cluster and, of nodes, not of the chosen ones.
func checkSelectors(t *testing.T, place, expr string) {
	t.Helper()
	// "Leader" tells a cluster from a single server by a metric that every node has.
	single := regexp.MustCompile(`0 \* sum\(ticketing_ready\{job="\$job"\}\) - 1`).ReplaceAllString(expr, "")
	for _, m := range regexp.MustCompile(`(\w+)\{([^}]*)\}`).FindAllStringSubmatch(single, -1) {
		ofNodes, wanted := strings.Contains(m[2], `instance=~"$instance"`), !slices.Contains(ofTheCluster, m[1])
		if !strings.Contains(m[2], `job="$job"`) || ofNodes != wanted {
			t.Errorf("%s: %s{%s}: of the chosen nodes: %v, want %v", place, m[1], m[2], ofNodes, wanted)
		}
	}
}

func TestEveryQueryIsOfWhatIsChosen(t *testing.T) {
	for name, d := range committed(t) {
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		if want := []string{"datasource", "job", "instance"}; !slices.Equal(variables, want) {
			t.Errorf("%s: variables %v, want %v", name, variables, want)
		}
		for _, p := range panels(d) {
			var refs []string
			for _, target := range p.Targets {
				q := target.(*prometheus.Dataquery)
				refs = append(refs, *q.RefId)
				if *q.Datasource.Uid != "${datasource}" || *p.Datasource.Uid != "${datasource}" {
					t.Errorf("%s: %s: not of the chosen data source", name, *p.Title)
				}
				checkSelectors(t, name+": "+*p.Title, q.Expr)
			}
			if n := len(refs); n == 0 || len(slices.Compact(refs)) != n {
				t.Errorf("%s: %s: queries %v", name, *p.Title, refs)
			}
		}
	}
}

// Of a range Grafana shows the last figure that there was: of nodes that are long gone, too.
func TestFiguresAreOfNow(t *testing.T) {
	for name, d := range committed(t) {
		for _, p := range panels(d) {
			if p.Type != "stat" && p.Type != "table" {
				continue
			}
			for _, target := range p.Targets {
				if q := target.(*prometheus.Dataquery); q.Instant == nil || !*q.Instant || q.Range != nil && *q.Range {
					t.Errorf("%s: %s goes on to show what was", name, *p.Title)
				}
			}
		}
	}
}

// A heading is a question, and the panels below it answer it.
func TestHeadingsAreQuestions(t *testing.T) {
	for name, d := range committed(t) {
		for _, p := range d.Panels {
			if p.RowPanel != nil && !strings.HasSuffix(*p.RowPanel.Title, "?") {
				t.Errorf("%s: %s", name, *p.RowPanel.Title)
			}
		}
	}
}

// An operator gets from each dashboard to every other one, for the same nodes and time.
func TestDashboardsLeadToEachOther(t *testing.T) {
	all := committed(t)
	uids := make(map[string]bool)
	for _, d := range all {
		uids[*d.Uid] = true
	}
	for name, d := range all {
		if !slices.Contains(d.Tags, tag) || len(d.Links) != 1 || !slices.Contains(d.Links[0].Tags, tag) || !d.Links[0].KeepTime || !d.Links[0].IncludeVars {
			t.Errorf("%s does not lead to the others", name)
		}
		for _, p := range panels(d) {
			for _, link := range p.Links {
				to, _, _ := strings.Cut(strings.TrimPrefix(*link.Url, "/d/"), "?")
				if !uids[to] || to == *d.Uid {
					t.Errorf("%s: %s leads to %q", name, *p.Title, to)
				}
			}
		}
	}
}

// Every panel of the wait until granted shows the traces of single acquires.
func TestWaitsLeadToTraces(t *testing.T) {
	shown := 0
	for name, d := range committed(t) {
		for _, p := range panels(d) {
			text, err := json.Marshal(p.Targets)
			if err != nil {
				t.Fatal(err)
			}
			if p.Type == "stat" || !bytes.Contains(text, []byte("ticketing_acquire_wait_seconds_bucket")) {
				continue
			}
			shown++
			if !bytes.Contains(text, []byte(`"exemplar":true`)) {
				t.Errorf("%s: %s shows no exemplars", name, *p.Title)
			}
		}
	}
	if shown < 3 {
		t.Errorf("%d panels show waits", shown)
	}
}
