package lint

import (
	"fmt"
	"go/ast"
	"go/format"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pure are the packages whose results follow from what they are given alone: the
// protocol, the Machine that replicas must agree on, and what it is made of.
var pure = []string{"core/wire", "core/lock", "core/internal/due"}

// clock is what of package time tells or waits for the real time.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}

// outside are packages that would tell the Machine something besides its entries.
var outside = []string{"context", "crypto/rand", "io/fs", "log", "log/slog", "maphash", "math/rand", "math/rand/v2", "net", "os", "sync", "syscall"}

// checkPure returns where a file reads a clock or starts a goroutine, and what it
// imports of outside. Package wire draws nonces, so it may import what it needs.
func checkPure(p parsed) (found []finding) {
	for _, s := range p.calls("time", clock...) {
		found = append(found, p.at(s, "time."+s.Sel.Name+" in a package that knows no clock"))
	}
	ast.Inspect(p.File, func(n ast.Node) bool {
		if n, ok := n.(*ast.GoStmt); ok {
			found = append(found, p.at(n, "a goroutine in a package that has none"))
		}
		return true
	})
	if p.folder() == "core/wire" {
		return found
	}
	for _, imported := range p.imports() {
		if withinAny(imported, outside) {
			found = append(found, p.at(p.Name, "imports "+imported+", from outside of what it is given"))
		}
	}
	return found
}

// checkSleep returns where a test sleeps for real. In a synctest bubble time is
// fake; end-to-end tests talk to real processes, and benchmarks pace a real load.
func checkSleep(p parsed) (found []finding) {
	if strings.Contains(p.base(), "e2e") || strings.Contains(p.base(), "bench") || slices.Contains(p.imports(), "testing/synctest") {
		return nil
	}
	for _, s := range p.calls("time", "Sleep") {
		found = append(found, p.at(s, "a real sleep in a test; use testing/synctest, or move it to an e2e file"))
	}
	return found
}

// checkFormat returns whether gofmt would change a file.
func checkFormat(f file) []finding {
	formatted, err := format.Source(f.text)
	switch {
	case err != nil:
		return []finding{finding(fmt.Sprintf("%s: %v", f.path, err))}
	case string(formatted) != string(f.text):
		return []finding{finding(f.path + ": gofmt would change it")}
	}
	return nil
}

// checkComments returns what is wrong with the package comment of the package that
// files are: it has exactly one, which begins with its name.
func checkComments(files []parsed) (found []finding) {
	var commented []string
	for _, f := range files {
		text := f.Doc.Text()
		if text == "" {
			continue
		}
		commented = append(commented, f.path)
		if begin := "Package " + f.Name.Name + " "; f.Name.Name != "main" && !strings.HasPrefix(text, begin) {
			found = append(found, f.at(f.Doc, fmt.Sprintf("the package comment does not begin with %q", begin)))
		}
	}
	if len(commented) != 1 {
		found = append(found, finding(fmt.Sprintf("%s: %d package comments, want one: %v", files[0].folder(), len(commented), commented)))
	}
	return found
}

// maxLines is how long a file may be before it must hold more than one concept.
const maxLines = 600

// checkLength returns whether a file of code is too long. Tables of tests may be
// longer.
func checkLength(f file) []finding {
	code := []string{".go", ".js", ".css", ".html", ".sh"}
	if f.isTest() || f.in("testdata") || !slices.Contains(code, path.Ext(f.path)) {
		return nil
	}
	if n := strings.Count(string(f.text), "\n"); n > maxLines {
		return []finding{finding(fmt.Sprintf("%s: %d lines, more than %d; does it hold one concept?", f.path, n, maxLines))}
	}
	return nil
}

// left are words for what somebody meant to do later, foreign what tells of the
// machine on which a file was written.
var (
	left    = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	foreign = regexp.MustCompile(`(^|[^\w.~/-])/(ro` + `ot|wo` + `rk|ho` + `me/\w+|Us` + `ers/\w+)(/|\b)|/t` + `mp/\w|\b(pro` + `xy\.golang\.org|py` + `pi\.org|pythonho` + `sted\.org|registry\.np` + `mjs\.org)\b`)
)

// checkWords returns the lines of a file that have such a word. Checksums have
// letters by chance.
func checkWords(f file) (found []finding) {
	if f.base() == "go.sum" {
		return nil
	}
	for i, line := range strings.Split(string(f.text), "\n") {
		if word := left.FindString(line); word != "" {
			found = append(found, finding(fmt.Sprintf("%s:%d: %s: do it, or file an issue", f.path, i+1, word)))
		}
		if word := foreign.FindString(line); word != "" {
			found = append(found, finding(fmt.Sprintf("%s:%d: %q is of one machine or network", f.path, i+1, strings.TrimSpace(word))))
		}
	}
	return found
}

func TestPurePackagesKnowNoClock(t *testing.T) {
	t.Parallel()
	for _, f := range goTree(t) {
		if !f.isTest() && slices.Contains(pure, f.folder()) {
			report(t, checkPure(parse(t, f)))
		}
	}
}

func TestTestsSleepOnlyEndToEnd(t *testing.T) {
	t.Parallel()
	for _, f := range goTree(t) {
		if f.isTest() {
			report(t, checkSleep(parse(t, f)))
		}
	}
}

func TestGofmtIsContent(t *testing.T) {
	t.Parallel()
	for _, f := range goTree(t) {
		report(t, checkFormat(f))
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	t.Parallel()
	packages := map[string][]parsed{}
	for _, f := range goTree(t) {
		if !f.isTest() {
			packages[f.folder()] = append(packages[f.folder()], parse(t, f))
		}
	}
	for _, files := range packages {
		report(t, checkComments(files))
	}
}

func TestFilesHoldOneConcept(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		report(t, checkLength(f))
	}
}

func TestNothingIsLeftForLaterOrFromOneMachine(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		report(t, checkWords(f))
	}
}

func TestSourceRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	syntax := func(check func(parsed) []finding) func(*testing.T, file) []finding {
		return func(t *testing.T, f file) []finding { return check(parse(t, f)) }
	}
	text := func(check func(file) []finding) func(*testing.T, file) []finding {
		return func(_ *testing.T, f file) []finding { return check(f) }
	}
	comments := syntax(func(p parsed) []finding { return checkComments([]parsed{p}) })
	for _, test := range []struct {
		rule  string
		check func(*testing.T, file) []finding
		path  string
		text  string
		found int
	}{
		{"pure", syntax(checkPure), "core/lock/a.go", "package a\nimport \"time\"\nvar t time.Duration = time.Second", 0},
		{"pure", syntax(checkPure), "core/lock/a.go", "package a\nimport \"time\"\nvar t = time.Now()", 1},
		{"pure", syntax(checkPure), "core/lock/a.go", "package a\nimport x \"time\"\nvar t = x.Since", 1},
		{"pure", syntax(checkPure), "core/wire/a.go", "package a\nimport \"time\"\nfunc f() { time.NewTimer(1); <-time.After(1); time.AfterFunc(1, nil) }", 3},
		{"pure", syntax(checkPure), "core/lock/a.go", "package a\nfunc f() { go f() }", 1},
		{"pure", syntax(checkPure), "core/lock/a.go", "package a\nimport (\n\"os\"\n\"context\"\n\"os/exec\"\n\"fmt\")", 3},

		{"sleep", syntax(checkSleep), "a/a_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }", 1},
		{"sleep", syntax(checkSleep), "a/a_e2e_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }", 0},
		{"sleep", syntax(checkSleep), "a/bench_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }", 0},
		{"sleep", syntax(checkSleep), "a/a_test.go", "package a\nimport (\n\"testing/synctest\"\n\"time\")\nfunc f() { time.Sleep(1) }", 0},

		{"format", text(checkFormat), "a.go", "package a\n\nvar a = 1\n", 0},
		{"format", text(checkFormat), "a.go", "package a\nvar a  = 1\n", 1},
		{"format", text(checkFormat), "a.go", "package", 1},

		{"comment", comments, "a/a.go", "// Package a is one.\npackage a", 0},
		{"comment", comments, "a/a.go", "// The command.\npackage main", 0},
		{"comment", comments, "a/a.go", "package a", 1},
		{"comment", comments, "a/a.go", "// Package b is another.\npackage a", 1},
		{"comment", comments, "a/a.go", "//go:build linux\n\npackage a", 1},
		{"comment", func(t *testing.T, f file) []finding {
			return checkComments([]parsed{parse(t, f), parse(t, f)})
		}, "a/a.go", "// Package a is one.\npackage a", 1},

		{"length", text(checkLength), "a.go", strings.Repeat("\n", 600), 0},
		{"length", text(checkLength), "a.go", strings.Repeat("\n", 601), 1},
		{"length", text(checkLength), "web/a.js", strings.Repeat("\n", 601), 1},
		{"length", text(checkLength), "a_test.go", strings.Repeat("\n", 601), 0},
		{"length", text(checkLength), "a/testdata/a.go", strings.Repeat("\n", 601), 0},
		{"length", text(checkLength), "a.md", strings.Repeat("\n", 601), 0},

		{"words", text(checkWords), "a.md", "to do: a fix for me, at ../shared/work/root, http://h/work, ~/work, a/tmp", 0},
		{"words", text(checkWords), "a.go", "// TO" + "DO: this\n// FIX" + "ME", 2},
		{"words", text(checkWords), "go.sum", "XX" + "X", 0},
		{"words", text(checkWords), "a.sh", "cd /wo" + "rk/main", 1},
		{"words", text(checkWords), "a.sh", "cat '/ro" + "ot/.bashrc'", 1},
		{"words", text(checkWords), "a.sh", "echo >/t" + "mp/x", 1},
		{"words", text(checkWords), "Makefile", "\tcd /ho" + "me/alice", 1},
		{"words", text(checkWords), "a.yml", "GOPROXY: https://pro" + "xy.golang.org", 1},
	} {
		found := test.check(t, file{test.path, []byte(test.text)})
		if len(found) != test.found {
			t.Errorf("%s, %s: %q: found %q, want %d", test.rule, test.path, test.text, found, test.found)
		}
	}
}
