package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// console writes traces for people, as they end: OTEL_TRACES_EXPORTER=console.
type console struct{ out io.Writer }

// write writes a trace as a line for itself and one for each span: when it began, counted
// from the first, how long it took, and what is known of it.
func (c console) write(t *Trace) {
	out := bufio.NewWriter(c.out)
	defer out.Flush() // a reader that has gone misses traces, and nothing else
	begin := t.Spans[0].Start
	fmt.Fprintf(out, "%s trace %s", begin.UTC().Format(time.RFC3339Nano), t.ID)
	if t.Outcome != "" {
		fmt.Fprintf(out, " %s after %v", t.Outcome, t.Duration().Round(time.Microsecond))
	}
	fmt.Fprintln(out)
	for i := range t.Spans {
		s := &t.Spans[i]
		fmt.Fprintf(out, "  %12v %12v  %-8s", s.Start.Sub(begin).Round(time.Microsecond), s.End.Sub(s.Start).Round(time.Microsecond), s.Name)
		for _, a := range s.Attributes {
			value := a.Value.String()
			if quoted := strconv.Quote(value); len(quoted) != len(value)+2 { // a key is data
				value = quoted
			}
			fmt.Fprintf(out, " %s=%s", a.Key, value)
		}
		for _, l := range s.Links {
			fmt.Fprintf(out, " after=%s", l.TraceID())
		}
		if s.Error != "" {
			fmt.Fprintf(out, " error=%q", s.Error)
		}
		fmt.Fprintln(out)
	}
}
