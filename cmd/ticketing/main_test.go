package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asProgram makes the test binary be the program: its processes can then be tested
// without building it.
const asProgram = "TICKETING_TEST_AS_PROGRAM"

// thisTest is the file of the test binary.
var thisTest, _ = os.Executable()

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// result is what a command line did.
type result struct {
	code           int
	stdout, stderr string
}

// String shows all of it, as a golden file has it.
func (r result) String() string {
	return fmt.Sprintf("exit code %d\n--- stdout\n%s--- stderr\n%s", r.code, r.stdout, r.stderr)
}

// ticketing runs a command line in this process.
func ticketing(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, env)
	return result{code, stdout.String(), stderr.String()}
}

// golden compares got with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s (go test -update writes it anew)\n--- got\n%s\n--- want\n%s", file, got, want)
	}
}

// writeFile makes a file in a folder of the test's own and returns its name.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// newTestProgram is a program whose output nobody looks at.
func newTestProgram(env ...string) *program {
	return &program{stdin: strings.NewReader(""), stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), env: env}
}
