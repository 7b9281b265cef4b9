// Command gen writes the Grafana dashboards as JSON: in the folder dashboards,
// "go generate". What Grafana shows is changed here and never in the files.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// folder is where the dashboards belong, seen from here.
const folder = "../grafana"

func main() {
	for name, d := range all() {
		text, err := encode(d)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// all returns the dashboards by the names of their files.
func all() map[string]board {
	return map[string]board{
		"overview.json":   overview(),
		"contention.json": contention(),
		"cluster.json":    cluster(),
		"runtime.json":    runtime(),
	}
}

// encode writes a dashboard for people to read as well.
func encode(d board) ([]byte, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", *d.Title, err)
	}
	for escaped, plain := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		text = bytes.ReplaceAll(text, []byte(escaped), []byte(plain))
	}
	return append(text, '\n'), nil
}
