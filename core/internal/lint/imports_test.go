package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ticketing-io/ticketing"

// layers says what of the project the production code of a package, or of all
// below it, may import. The longest name that fits counts. Everything has an
// entry, so that a new package is thought about. Imports point one way: cmd, then
// admin, telemetry, deploy and core/node, then the parts of the core, then wire and
// lock.
var layers = map[string][]string{
	"cmd":           {"client", "core", "telemetry", "admin", "web", "deploy"},
	"admin":         {"core", "web"},
	"telemetry":     {"core", "telemetry"},
	"deploy":        {"core/config", "core/wire"},
	"web":           {},
	"dashboards":    {},
	"client":        {"client", "core/wire"},
	"core/node":     {"core/server", "core/service", "core/local", "core/replica", "core/control", "core/link", "core/config", "core/wire", "core/lock"},
	"core/server":   {"core/service", "core/wire", "core/lock", "core/internal"},
	"core/service":  {"core/wire", "core/lock", "core/internal"},
	"core/local":    {"core/service", "core/lock", "core/internal"},
	"core/replica":  {"core/service", "core/link", "core/wire", "core/lock", "core/internal"},
	"core/control":  {"core/link", "core/internal"},
	"core/link":     {"core/internal"},
	"core/config":   {"core/wire", "core/lock", "core/internal"},
	"core/wire":     {},
	"core/lock":     {"core/internal"},
	"core/internal": {},
	"core/coretest": {"core"},
}

// onlyIn names what one part of the project alone may import: libraries, so that
// each stays replaceable, and the test harness, which no production code imports. The
// harness stands in for raft's network and disks, so it has raft's types too.
var onlyIn = map[string][]string{
	"github.com/hashicorp/raft":           {"core/replica", "core/coretest"},
	"github.com/hashicorp/raft-wal":       {"core/replica"},
	"github.com/anishathalye/porcupine":   {"core/coretest"},
	"go.opentelemetry.io/otel":            {"client", "telemetry"}, // the API
	"go.opentelemetry.io/otel/sdk":        {"telemetry"},
	"go.opentelemetry.io/otel/exporters":  {"telemetry"},
	"github.com/prometheus/client_golang": {"telemetry"},
	"github.com/gorilla/websocket":        {"admin"},
	module + "/core/coretest":             {"core/coretest"},
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Imports    []string // of production code
	Deps       []string // all below them
}

// name returns the package's path in the project, "" for the root.
func (p pkg) name() string { return inProject(p.ImportPath) }

func inProject(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// within tells whether a path is a package or below it.
func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+"/")
}

func withinAny(path string, above []string) bool {
	return slices.ContainsFunc(above, func(a string) bool { return within(path, a) })
}

// checkLayers returns the imports of a package that its entry in layers lacks.
func checkLayers(p pkg) (found []finding) {
	entry := ""
	for name := range maps.Keys(layers) {
		if within(p.name(), name) && len(name) > len(entry) {
			entry = name
		}
	}
	if entry == "" {
		return []finding{finding(fmt.Sprintf("%s: has no entry in layers: say what it may import", p.ImportPath))}
	}
	for _, path := range p.Imports {
		if within(path, module) && !withinAny(inProject(path), layers[entry]) {
			found = append(found, finding(fmt.Sprintf("%s: imports %s; %s may import %v of the project", p.ImportPath, path, entry, layers[entry])))
		}
	}
	return found
}

// checkOnlyIn returns the imports of a package that belong elsewhere.
func checkOnlyIn(p pkg) (found []finding) {
	for _, path := range p.Imports {
		for what, where := range onlyIn {
			if within(path, what) && !withinAny(p.name(), where) {
				found = append(found, finding(fmt.Sprintf("%s: imports %s, which only %v may", p.ImportPath, path, where)))
			}
		}
	}
	return found
}

// checkAlone returns what a package depends on that a user of the protocol or of
// the client must not be given: core/wire is the standard library without net, the
// client has nothing of the project but core/wire.
func checkAlone(p pkg) (found []finding) {
	for _, path := range p.Deps {
		standard := !strings.Contains(strings.Split(path, "/")[0], ".")
		switch {
		case within(p.name(), "core/wire") && (!standard && !within(inProject(path), "core/wire") || path == "net"):
		case within(p.name(), "client") && within(path, module) && !withinAny(inProject(path), layers["client"]):
		default:
			continue
		}
		found = append(found, finding(fmt.Sprintf("%s: depends on %s", p.ImportPath, path)))
	}
	return found
}

// packages returns every package of the project as built for an operating system.
func packages(t *testing.T, system string) (all []pkg) {
	t.Helper()
	for _, folder := range modules(t) {
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", folder, err)
		}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p pkg
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

// modules returns the folder of each module of the project.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	for _, f := range tree(t) {
		if f.base() == "go.mod" {
			folders = append(folders, filepath.Join(root, f.folder()))
		}
	}
	return folders
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, p := range packages(t, system) {
			report(t, checkLayers(p))
			report(t, checkOnlyIn(p))
			report(t, checkAlone(p))
		}
	}
}

func TestImportRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		importer, imported string
		found              int
	}{
		{"cmd/ticketing", module + "/core/node", 0},
		{"cmd/ticketing", module + "/client", 0},
		{"client/fence", module + "/client", 0},
		{"core/node", module + "/core/service", 0},
		{"core/replica/store", "github.com/hashicorp/raft", 0},
		{"core/wire", "time", 0},

		{"shiny", "fmt", 1},
		{"core/shiny", "fmt", 1},
		{"cmd/ticketing", module + "/shiny", 1},
		{"client", module + "/core/service", 2},
		{"client", module + "/core/wirework", 2},
		{"core/wire", module + "/core/lock", 2},
		{"core/wire", "golang.org/x/sys/unix", 1},
		{"core/wire", "net", 1},
		{"core/lock", module + "/core/wire", 1},
		{"core/service", module + "/core/node", 1},
		{"core/node", module + "/telemetry", 1},
		{"core/node", module + "/client", 1},
		{"core/node", module + "/admin", 1},
		{"core/config", module + "/deploy", 1},
		{"core/config", module + "/cmd/ticketing", 1},
		{"telemetry", module + "/cmd/ticketing", 1},
		{"core/service", "github.com/hashicorp/raft", 1},
		{"core/node", "github.com/hashicorp/raft-wal/metadb", 1},
		{"client", "go.opentelemetry.io/otel/trace", 0},
		{"client", "go.opentelemetry.io/otel/sdk/trace", 1},
		{"core/service", "go.opentelemetry.io/otel/trace", 1},
		{"admin", "go.opentelemetry.io/otel/sdk/trace", 2}, // neither the SDK nor the API
		{"core/node", "go.opentelemetry.io/otel/exporters/otlp/otlptrace", 2},
		{"admin", "github.com/prometheus/client_golang/prometheus", 1},
		{"cmd/ticketing", "github.com/gorilla/websocket", 1},
		{"cmd/ticketing", module + "/core/coretest", 1},
		{"core/coretest", "github.com/hashicorp/raft", 0},
		{"core/coretest", "github.com/hashicorp/raft-wal", 1},
	} {
		p := pkg{module + "/" + test.importer, []string{test.imported}, []string{test.imported}}
		found := slices.Concat(checkLayers(p), checkOnlyIn(p), checkAlone(p))
		if len(found) != test.found {
			t.Errorf("%s imports %s: found %q, want %d", test.importer, test.imported, found, test.found)
		}
	}
}
