package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"

	toml "github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// readFile returns a regular file's bytes and permissions. Its problem says what
// to do.
func readFile(name string) (data []byte, mode fs.FileMode, problem string) {
	// Looked at first, since opening a pipe could wait for ever.
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, fileProblem(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, quote(name) + " is not a regular file; name one"
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, fileProblem(name, err)
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, 0, fileProblem(name, err)
	}
	if len(data) > MaxFile {
		return nil, 0, fmt.Sprintf("%s is larger than %d bytes; this is not the right file", quote(name), MaxFile)
	}
	return data, info.Mode(), ""
}

func fileProblem(name string, err error) string {
	var cause *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no file " + quote(name) + "; put it there or correct the path"
	case errors.Is(err, fs.ErrPermission):
		return quote(name) + " can't be read: permission denied; let the server's user read it"
	case errors.As(err, &cause):
		err = cause.Err
	}
	return fmt.Sprintf("%s can't be read: %v; correct the path or the file", quote(name), err)
}

// exposed returns what is wrong with the permissions of a file with secrets, or "".
func exposed(name string, mode fs.FileMode) string {
	what := ""
	switch {
	case mode&0o002 != 0:
		what = "changed"
	case mode&0o004 != 0:
		what = "read"
	default:
		return ""
	}
	return fmt.Sprintf("%s can be %s by every user of this machine; run chmod o-rw on it", quote(name), what)
}

// byteOrderMark is what some editors put before a text. It is invisible, so the
// fault that would follow from it would be a riddle.
var byteOrderMark = []byte("\ufeff")

const markProblem = "begins with a byte order mark; save it as UTF-8 without one"

// parseTOML returns a document as nested maps and the line of each key in it, by
// the key's path; the second entry of a list under key k has path k.1. The error
// is a syntaxError.
func parseTOML(data []byte) (tree map[string]any, at lineIndex, err error) {
	if bytes.HasPrefix(data, byteOrderMark) {
		return nil, nil, &syntaxError{1, markProblem}
	}
	if err := toml.Unmarshal(data, &tree); err != nil {
		return nil, nil, newSyntaxError(err)
	}
	return tree, indexLines(data), nil
}

// syntaxError is the first thing in a document that is not TOML.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return e.text }

// quoted is where a message of the TOML library repeats a part of the document,
// which may be a part of a secret.
var quoted = regexp.MustCompile(` *"[^"]*"`)

func newSyntaxError(err error) *syntaxError {
	text := quoted.ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), "")
	if strings.Contains(text, "strconv") {
		text = "a number is out of range"
	}
	e := &syntaxError{text: "is not TOML here: " + text}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		e.line, _ = at.Position()
	}
	return e
}

// lineIndex is the line of each key path of a document.
type lineIndex map[string]int

// of returns the line of a path, or of what it stands in.
func (x lineIndex) of(path string) int {
	for {
		if line, ok := x[path]; ok {
			return line
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return 0
		}
		path = path[:dot]
	}
}

// indexLines finds the lines. The TOML library tells positions only of what it
// can't decode; its parser, in a package that it calls unstable since its
// interface may change, tells all of them.
func indexLines(data []byte) lineIndex {
	x := indexer{at: lineIndex{}, entries: map[string]int{}}
	for i, c := range data {
		if c == '\n' {
			x.newlines = append(x.newlines, i)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	prefix := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table:
			prefix = x.key("", e)
		case unstable.ArrayTable:
			list := x.key("", e)
			prefix = list + "." + strconv.Itoa(x.entries[list])
			x.entries[list]++
			it := e.Key()
			it.Next()
			x.note(prefix, it.Node())
		case unstable.KeyValue:
			x.value(x.key(prefix, e), e.Value())
		}
	}
	return x.at
}

type indexer struct {
	at       lineIndex
	newlines []int          // the offset of each
	entries  map[string]int // how many [[list]] entries there were
}

// maxDepth is how deep in the document lines are noted: cluster.members.1.raft is
// the deepest key there is.
const maxDepth = 4

// key notes the line of a node's key, below prefix, and returns its path, in which
// a part that has a dot itself is quoted.
func (x *indexer) key(prefix string, node *unstable.Node) string {
	path := prefix
	for it, depth := node.Key(), 0; depth < maxDepth && it.Next(); depth++ {
		if path != "" {
			path += "."
		}
		path += keyName(string(it.Node().Data))
		x.note(path, it.Node())
	}
	return path
}

// value notes the lines of what is inside a list or an inline table.
func (x *indexer) value(path string, node *unstable.Node) {
	if strings.Count(path, ".") >= maxDepth {
		return
	}
	i := 0
	for it := node.Children(); it.Next(); i++ {
		child := it.Node()
		switch {
		case node.Kind == unstable.InlineTable:
			x.value(x.key(path, child), child.Value())
		case node.Kind == unstable.Array:
			entry := path + "." + strconv.Itoa(i)
			x.note(entry, child)
			x.value(entry, child)
		}
	}
}

// note keeps the first line of a path. A node without a place of its own stands
// where the one around it does.
func (x *indexer) note(path string, node *unstable.Node) {
	if _, known := x.at[path]; known || node.Raw.Length == 0 {
		return
	}
	x.at[path] = 1 + sort.SearchInts(x.newlines, int(node.Raw.Offset))
}
