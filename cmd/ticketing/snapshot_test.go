package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/control"
	"github.com/ticketing-io/ticketing/core/lock"
)

// exampleSnapshot is a file with two locks held.
func exampleSnapshot(t *testing.T) []byte {
	t.Helper()
	m := lock.New()
	var out lock.Outcome
	m.Apply(&lock.Entry{First: 1 << 50}, &out)
	for _, key := range []string{"order-1", "order-2"} {
		m.Apply(&lock.Entry{Reign: m.Reign(), Commands: []lock.Command{{Kind: lock.KindGrant, Key: key, Owner: 7, Lease: time.Minute}}}, &out)
	}
	var b bytes.Buffer
	if _, err := m.Snapshot().WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if m.Len() != 2 {
		t.Fatalf("%d locks are held", m.Len())
	}
	return b.Bytes()
}

// inFolder returns a folder, and shows it under the same name every time.
func inFolder(t *testing.T) (dir string, show func(result) string) {
	dir = t.TempDir()
	return dir, func(r result) string { return strings.ReplaceAll(r.String(), dir, "DIR") }
}

// A saved file is what the cluster sent, for its owner alone, with nothing beside it.
func TestSnapshotSave(t *testing.T) {
	for _, form := range []string{"", "-json"} {
		t.Run("form"+form, func(t *testing.T) {
			withCluster(t, func(t *testing.T, f *fakeCluster) {
				n := f.node("a")
				n.snapshot = exampleSnapshot(t)
				dir, show := inFolder(t)
				file := filepath.Join(dir, "locks")
				args := []string{"snapshot", "save", file, "--node", "a.example:5226"}
				if form != "" {
					args = append(args, "--json")
				}
				golden(t, "cluster/snapshot-save"+form, show(f.run(args...)))
				data, err := os.ReadFile(file)
				if err != nil || !bytes.Equal(data, n.snapshot) {
					t.Errorf("%d bytes, %v", len(data), err)
				}
				if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
				if names, _ := os.ReadDir(dir); len(names) != 1 {
					t.Errorf("left behind: %v", names)
				}
			})
		})
	}
}

// Whatever goes wrong, an earlier file stays as it was, and nothing lies beside it.
func TestASnapshotThatIsNotSaved(t *testing.T) {
	whole := exampleSnapshot(t)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		name     string
		snapshot []byte
		err      error
		exit     int
	}{
		{"broken-off", whole[:len(whole)/2], errors.New("disk"), exitError},
		{"cut", whole[:len(whole)-1], nil, exitError},
		{"flipped", flipped, nil, exitError},
		{"longer", append(bytes.Clone(whole), 0), nil, exitError},
		{"empty", nil, nil, exitError},
		{"refused", nil, control.Refuse("Wait until it is done, and try again.", "another snapshot is being saved or restored"), exitRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			withCluster(t, func(t *testing.T, f *fakeCluster) {
				n := f.node("a")
				n.snapshot, n.err = c.snapshot, c.err
				dir, show := inFolder(t)
				file := filepath.Join(dir, "locks")
				if err := os.WriteFile(file, []byte("yesterday's"), 0o600); err != nil {
					t.Fatal(err)
				}
				r := f.run("snapshot", "save", file, "--node", "a.example:5226")
				if r.code != c.exit {
					t.Errorf("exit code %d", r.code)
				}
				golden(t, "cluster/snapshot-not-saved-"+c.name, show(r))
				if data, _ := os.ReadFile(file); string(data) != "yesterday's" {
					t.Errorf("the file holds %q", data)
				}
				if names, _ := os.ReadDir(dir); len(names) != 1 {
					t.Errorf("left behind: %v", names)
				}
			})
		})
	}
	withCluster(t, func(t *testing.T, f *fakeCluster) {
		n := f.node("a")
		r := f.run("snapshot", "save", "no/such/folder/locks", "--node", "a.example:5226")
		if r.code != exitError || n.calls() != nil {
			t.Errorf("no folder: %v, asked %q", r, n.calls())
		}
	})
}

func TestSnapshotRestore(t *testing.T) {
	for _, c := range []struct {
		name   string
		more   []string
		waived bool
	}{
		{"plain", nil, false},
		{"json", []string{"--json"}, false},
		{"waived", []string{"--without-quiet-period", waiver}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			withCluster(t, func(t *testing.T, f *fakeCluster) {
				n := f.node("a")
				whole := exampleSnapshot(t)
				dir, show := inFolder(t)
				file := filepath.Join(dir, "locks")
				if err := os.WriteFile(file, whole, 0o600); err != nil {
					t.Fatal(err)
				}
				r := f.run(append([]string{"snapshot", "restore", file, "--node", "a.example:5226"}, c.more...)...)
				golden(t, "cluster/snapshot-restore-"+c.name, show(r))
				if !bytes.Equal(n.restored, whole) || n.waived != c.waived {
					t.Errorf("%d bytes, waived %v", len(n.restored), n.waived)
				}
			})
		})
	}
}

// A faulty file is not sent, and a cluster in use says why it takes none.
func TestASnapshotThatIsNotRestored(t *testing.T) {
	whole := exampleSnapshot(t)
	withCluster(t, func(t *testing.T, f *fakeCluster) {
		n := f.node("a")
		dir, show := inFolder(t)
		for name, content := range map[string][]byte{"cut": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0), "text": []byte("hello"), "empty": nil} {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if r := f.run("snapshot", "restore", file, "--node", "a.example:5226"); r.code != exitError {
				t.Errorf("%s: %v", name, r)
			} else if name == "cut" {
				golden(t, "cluster/snapshot-not-restored-cut", show(r))
			}
		}
		if r := f.run("snapshot", "restore", dir, "--node", "a.example:5226"); r.code != exitError {
			t.Errorf("a folder: %v", r)
		}
		if n.calls() != nil {
			t.Errorf("asked %q", n.calls())
		}
		n.err = control.Refuse("Restore into a cluster that is new: its nodes with empty data folders.", "the cluster has granted locks before")
		file := filepath.Join(dir, "whole")
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		r := f.run("snapshot", "restore", file, "--node", "a.example:5226")
		golden(t, "cluster/snapshot-not-restored-fresh", show(r))
		if got := n.calls(); r.code != exitRefused || !slices.Equal(got, []string{"restore"}) {
			t.Errorf("exit code %d, asked %q", r.code, got)
		}
	})
}
