package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write the columns of the document that follow from the registry")

const document = "../../docs/METRICS.md"

// lookAt is the column that is written by hand: what to look at.
const lookAt = 5

// The document's tables are the registry: each metric has one row, with its type, labels,
// unit and meaning. With -update the rows are written, but for what to look at.
func TestTheDocumentIsTheRegistry(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string) // rows, by name, up to the last column
	for name, f := range families(t, ofCluster()) {
		if ours(name) {
			want[name] = row(f)
		}
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		name := strings.Trim(cells[0], "| `\n")
		if !strings.HasPrefix(line, "| `") || !ours(name) {
			lines = append(lines, line)
			continue
		}
		beginning, known := want[name]
		switch {
		case !known:
			t.Errorf("%s is in the document once too often", name)
			continue
		case len(cells) != lookAt+1 || strings.Trim(cells[lookAt], "| \n") == "":
			t.Errorf("%s: say in the last column what to look at", name)
		case !strings.HasPrefix(line, beginning) && !*update:
			t.Errorf("the document has\n%swant\n%s...", line, beginning)
		}
		delete(want, name)
		lines = append(lines, beginning+cells[len(cells)-1])
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s is missing; with -update it is put at the end", name)
		lines = append(lines, want[name]+" |\n")
	}
	if *update {
		if err := os.WriteFile(document, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// row writes a metric's row, up to the last column.
func row(f *dto.MetricFamily) string {
	kind := strings.ToLower(f.GetType().String())
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | ", f.GetName(), kind, labels(f), unit(f.GetName()), f.GetHelp())
}

// named are labels whose values are a version, a hash or a name of the configuration.
var named = []string{"version", "revision", "go", "hash", "peer"}

// labels lists a metric's labels, each with the values that it may have.
func labels(f *dto.MetricFamily) string {
	values := make(map[string][]string)
	var names []string
	for _, s := range f.GetMetric() {
		for _, l := range s.GetLabel() {
			if values[l.GetName()] == nil {
				names = append(names, l.GetName())
			}
			if !slices.Contains(values[l.GetName()], l.GetValue()) {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
	}
	var list []string
	for _, name := range names {
		if slices.Contains(named, name) {
			list = append(list, "`"+name+"`")
			continue
		}
		slices.Sort(values[name])
		list = append(list, "`"+name+"`: "+strings.Join(values[name], ", "))
	}
	return strings.Join(list, "; ")
}

// unit returns the unit that a name says.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, u := range []string{"seconds", "bytes", "ratio"} {
		if strings.HasSuffix(name, "_"+u) {
			return u
		}
	}
	return "number"
}
