package lint

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// staticcheckAt is the version of staticcheck. It is run as a program of its own,
// so that the product's go.mod has nothing of it.
const staticcheckAt = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"

// toolTime bounds one run of a tool, its download and build included.
const toolTime = 8 * time.Minute

// installAttempts is how often an install is tried: networks are flaky.
const installAttempts = 3

// unchecked are modules that vet and staticcheck leave out: checking a main of a few
// lines would download and compile a whole database.
var unchecked = []string{"cmd/peers/etcd"}

// run runs a tool in a folder and returns each line that it says as a finding. A
// tool that can't be run at all fails the test.
func run(t *testing.T, folder, name string, args ...string) (found []finding) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err == nil {
		return nil
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, finding(folder+": "+line))
		}
	}
	if found == nil {
		t.Fatalf("%s in %s: %v", name, folder, err)
	}
	return found
}

func vet(t *testing.T, folder string) []finding {
	t.Helper()
	return run(t, folder, "go", "vet", "-tags", "e2e", "./...")
}

// staticcheck returns a function that runs it in a folder.
func staticcheck(t *testing.T) func(folder string) []finding {
	t.Helper()
	bin := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), toolTime)
	defer cancel()
	var out []byte
	var err error
	for range installAttempts {
		install := exec.CommandContext(ctx, "go", "install", staticcheckAt)
		install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
		if out, err = install.CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil {
		unavailable(t, "staticcheck can't be installed: %v\n%s", err, out)
	}
	return func(folder string) []finding {
		t.Helper()
		return run(t, folder, filepath.Join(bin, "staticcheck"), "-tags", "e2e", "./...")
	}
}

// unavailable skips a test whose tool is missing, on a developer's machine without
// a network for example. Where CI is set every tool must be there.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// checked returns the folders of the modules that vet and staticcheck look at.
func checked(t *testing.T) (folders []string) {
	t.Helper()
	for _, folder := range modules(t) {
		name, err := filepath.Rel(root, folder)
		if err != nil {
			t.Fatal(err)
		}
		if !withinAny(filepath.ToSlash(name), unchecked) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// sample writes a module with one file.
func sample(t *testing.T, source string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{"go.mod": "module sample\n\ngo 1.26\n", "sample.go": source} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestVetIsContent(t *testing.T) {
	t.Parallel()
	for _, folder := range checked(t) {
		report(t, vet(t, folder))
	}
	if found := vet(t, sample(t, "package sample\n\nimport \"fmt\"\n\nfunc F() { fmt.Printf(\"%d\", \"x\") }\n")); len(found) != 1 {
		t.Errorf("of a bad sample it found %q", found)
	}
}

func TestStaticcheckIsContent(t *testing.T) {
	t.Parallel()
	check := staticcheck(t)
	for _, folder := range checked(t) {
		report(t, check(folder))
	}
	if found := check(sample(t, "// Package sample is bad.\npackage sample\n\nfunc unused() {}\n")); len(found) != 1 {
		t.Errorf("of a bad sample it found %q", found)
	}
}

func TestShellcheckIsContent(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		unavailable(t, "shellcheck is not installed: %v", err)
	}
	for _, f := range tree(t) {
		if isShell(f) {
			report(t, run(t, root, "shellcheck", "--external-sources", "--format=gcc", f.path))
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.sh")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\nrm $1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if found := run(t, root, "shellcheck", "--format=gcc", bad); len(found) != 1 {
		t.Errorf("of a bad sample it found %q", found)
	}
}

// isShell tells whether a file is a shell script, by its name or its first line.
func isShell(f file) bool {
	first, _, _ := bytes.Cut(f.text, []byte("\n"))
	return strings.HasSuffix(f.path, ".sh") ||
		bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(bytes.TrimSpace(first), []byte("sh"))
}

func TestShellScriptsAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, text string
		want       bool
	}{
		{"a.sh", "echo", true},
		{".ci/run", "#!/usr/bin/env bash\n", true},
		{"a", "#!/bin/sh\n", true},
		{"a", "#!/usr/bin/env python3\n", false},
		{"a.md", "sh\n", false},
	} {
		if got := isShell(file{test.path, []byte(test.text)}); got != test.want {
			t.Errorf("%s, %q: %v", test.path, test.text, got)
		}
	}
}
