package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLine is the longest piece of a line in bytes that is kept until its end
// comes; a longer line is shown in pieces.
const maxLine = 64 << 10

// output is the one stream to which all nodes' lines and our own words go.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// say writes a line of our own.
func (o *output) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.w, "-- | "+format+"\n", args...)
}

// show writes text as it is.
func (o *output) show(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	io.WriteString(o.w, text)
}

// prefixed returns a writer for one process, whose lines each begin with a name.
func (o *output) prefixed(name string) *lineWriter {
	return &lineWriter{out: o, prefix: name + " | "}
}

// lineWriter writes whole lines. One goroutine uses it.
type lineWriter struct {
	out    *output
	prefix string
	rest   []byte // of a line whose end has not come
}

// Write never fails: a terminal that is gone must not end the nodes.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			break
		}
		l.line(l.rest[:end])
		l.rest = l.rest[end+1:]
	}
	if len(l.rest) >= maxLine {
		l.end()
	}
	return len(p), nil
}

// end writes what is left of a line.
func (l *lineWriter) end() {
	if len(l.rest) > 0 {
		l.line(l.rest)
		l.rest = nil
	}
}

func (l *lineWriter) line(text []byte) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	fmt.Fprintf(l.out.w, "%s%s\n", l.prefix, text)
}
