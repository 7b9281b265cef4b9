package main

import (
	"fmt"
	"io"
	"slices"
)

// namedFigure is a line of the table of what is no rate, such as memory.
type namedFigure struct {
	name, title, unit, goal string
}

var namedFigures = []namedFigure{
	{"rest-cpu", "Ticketing at rest: the busiest node", "% of a core", "under 1"},
	{"rest-memory", "Ticketing at rest: the largest node", "MiB", "under 80"},
	{"rest-after-cpu", "Ticketing at rest after all of this: the busiest node", "% of a core", "under 1"},
	{"rest-after-memory", "Ticketing at rest after all of this: the largest node", "MiB", "under 80"},
	{"etcd3-rest-cpu", "etcd at rest: the busiest node", "% of a core", ""},
	{"etcd3-rest-memory", "etcd at rest: the largest node", "MiB", ""},
	{"etcd3-rest-after-cpu", "etcd at rest after all of this: the busiest node", "% of a core", ""},
	{"etcd3-rest-after-memory", "etcd at rest after all of this: the largest node", "MiB", ""},
	{"restart", "Ticketing: all three killed and started with 58,000 active keys: until a client has a lock", "s", "under 5"},
}

func writeFigures(out io.Writer, values map[string][]float64) {
	if len(values) == 0 {
		return
	}
	fmt.Fprint(out, "\n| figure | measured | lowest to highest | goal |\n| --- | ---: | ---: | --- |\n")
	for _, f := range namedFigures {
		v := values[f.name]
		if len(v) == 0 {
			continue
		}
		fmt.Fprintf(out, "| %s | %s %s | %s to %s | %s |\n", f.title, metricValue(median(v)), f.unit,
			metricValue(slices.Min(v)), metricValue(slices.Max(v)), f.goal)
	}
}
