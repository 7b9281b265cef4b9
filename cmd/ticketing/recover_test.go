package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/replica"
)

// stoppedNode writes the configuration of a node and returns its file and its data
// folder.
func stoppedNode(t *testing.T) (dir, file, data string) {
	t.Helper()
	dir = t.TempDir()
	data = filepath.Join(dir, "data")
	file = filepath.Join(dir, "ticketing.toml")
	text := fmt.Sprintf("advertise = \"a.example:5225\"\n[cluster]\nnode_id = \"a\"\ndata_dir = %q\n", data)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file, data
}

// recover does nothing to what is no stopped node's data folder, and says why.
func TestANodeThatIsNotRecovered(t *testing.T) {
	const one, other = `[{"id":"a","address":"a.example:5226"}]`, `[{"id":"b","address":"b.example:5226"}]`
	for _, c := range []struct {
		name  string
		peers string
		exit  int
		data  func(t *testing.T, data string)
	}{
		{"no-folder", one, exitError, func(*testing.T, string) {}},
		{"empty-folder", one, exitRefused, makeFolder},
		{"not-among-peers", other, exitRefused, makeFolder},
		{"no-json", "a", exitError, makeFolder},
		{"running", one, exitRefused, func(t *testing.T, data string) {
			// As a running node does.
			r, err := replica.New(replica.Options{NodeID: "a", DataDir: data})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close(t.Context()) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, file, data := stoppedNode(t)
			c.data(t, data)
			peers := filepath.Join(dir, "peers.json")
			if err := os.WriteFile(peers, []byte(c.peers), 0o600); err != nil {
				t.Fatal(err)
			}
			r := ticketing(t, nil, "recover", "--config", file, "--peers", peers)
			if r.code != c.exit {
				t.Errorf("exit code %d, want %d", r.code, c.exit)
			}
			golden(t, "cluster/not-recovered-"+c.name, strings.ReplaceAll(r.String(), dir, "DIR"))
		})
	}
	_, file, data := stoppedNode(t)
	makeFolder(t, data)
	if r := ticketing(t, nil, "recover", "--config", file, "--peers", "no-such-file"); r.code != exitError {
		t.Errorf("no peers file: %v", r)
	}
}

func makeFolder(t *testing.T, data string) {
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
}
