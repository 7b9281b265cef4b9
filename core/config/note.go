package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxNotes is how many faults Error writes out: enough for every real file, and a
// bound for one that is no configuration at all.
const maxNotes = 100

// maxQuoted is how much of a value a note repeats, in bytes.
const maxQuoted = 80

// Note is one thing to tell the operator about the configuration.
type Note struct {
	// Key is the key as the file spells it, with its section ("tls.cert"), or
	// empty when the note is about a file as a whole.
	Key string
	// Source is where the value was set: "FILE:LINE", "environment NAME",
	// "flag --NAME" or "default".
	Source string
	// Text says what is wrong and what to do. It never has a secret in it.
	Text string

	order int
}

// String returns the note as one line.
func (n Note) String() string {
	parts := slices.DeleteFunc([]string{n.Source, n.Key, n.Text}, func(s string) bool { return s == "" })
	return strings.Join(parts, ": ")
}

// Faults is the error of a configuration that can't be used: everything that is
// wrong with it, ordered by place.
type Faults []Note

// Error returns one line a fault.
func (f Faults) Error() string { return lines(f) }

// Warnings are what an operator should know of a configuration that is used all
// the same, ordered by place.
type Warnings []Note

// String returns one line a warning.
func (w Warnings) String() string { return lines(w) }

func lines(notes []Note) string {
	var b strings.Builder
	for i, n := range notes[:min(len(notes), maxNotes)] {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(n.String())
	}
	if more := len(notes) - maxNotes; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}

func sortNotes(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(a.order, b.order) })
}

// A source is the place where a value was set. Notes are ordered by it: the file
// by line, then the environment, then flags, then the files that are named there.
type source struct {
	text  string
	order int
}

// Ranks of sources. Each has room for more lines than MaxFile has bytes.
const (
	rankFile  = 0
	rankEnv   = 1 << 21
	rankFlag  = 2 << 21
	rankNone  = 3 << 21
	rankOther = 4 << 21
)

func fileSource(rank int, name string, line int) source {
	if line == 0 {
		return source{name, rank}
	}
	return source{name + ":" + strconv.Itoa(line), rank + line}
}

// quote writes a value into a note: on one line whatever is in it, and bounded.
func quote(s string) string {
	if len(s) > maxQuoted {
		s = s[:maxQuoted] + "…"
	}
	return strconv.Quote(s)
}
