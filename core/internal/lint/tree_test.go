package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the project's folder, seen from this one.
const root = "../../.."

// maxText is the largest file in bytes that is taken for one that somebody wrote.
const maxText = 1 << 20

// file is one text file of the project.
type file struct {
	path string // from the root, with slashes
	text []byte
}

// finding is one place that breaks a rule.
type finding string

// report fails a test for what was found.
func report(t *testing.T, found []finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}

// leftOut are folders that nobody writes in by hand: made, fetched or not ours.
var leftOut = []string{".git", ".cluster", "bin", "build", "vendor", "node_modules"}

// tree returns every text file of the project, those of nested modules included.
func tree(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(leftOut, d.Name()) {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxText {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil
		}
		name, err := filepath.Rel(root, path)
		files = append(files, file{filepath.ToSlash(name), text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goTree returns the Go files among them, without those that only a test reads.
func goTree(t *testing.T) []file {
	return slices.DeleteFunc(tree(t), func(f file) bool {
		return !strings.HasSuffix(f.path, ".go") || f.in("testdata")
	})
}

// in tells whether the file is in or below a folder of that name.
func (f file) in(folder string) bool {
	return slices.Contains(strings.Split(f.folder(), "/"), folder)
}

func (f file) folder() string {
	i := strings.LastIndexByte(f.path, '/')
	if i < 0 {
		return "."
	}
	return f.path[:i]
}

func (f file) base() string { return f.path[strings.LastIndexByte(f.path, '/')+1:] }

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// parsed is a Go file's syntax.
type parsed struct {
	file
	*ast.File
	fset *token.FileSet
}

func parse(t *testing.T, f file) parsed {
	t.Helper()
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return parsed{f, syntax, fset}
}

// at writes a place and what is wrong there.
func (p parsed) at(n ast.Node, text string) finding {
	pos := p.fset.Position(n.Pos())
	return finding(pos.String() + ": " + text)
}

// imports returns what the file imports.
func (p parsed) imports() []string {
	var paths []string
	for _, i := range p.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, "`\""))
	}
	return paths
}

// calls returns the places where the file names one of a package's functions,
// called or not.
func (p parsed) calls(pkg string, names ...string) []*ast.SelectorExpr {
	local := ""
	for _, i := range p.Imports {
		if strings.Trim(i.Path.Value, "`\"") == pkg {
			local = pkg[strings.LastIndexByte(pkg, '/')+1:]
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	var found []*ast.SelectorExpr
	ast.Inspect(p.File, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && local != "" && x.Name == local && slices.Contains(names, s.Sel.Name) {
			found = append(found, s)
		}
		return true
	})
	return found
}
