package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// benchmark is one line that go test -bench printed.
type benchmark struct {
	name    string
	once    bool // it ran once, so it reports what it measured in metrics of its own
	metrics []metric
}

// standardUnits are what go test reports of every benchmark.
var standardUnits = []string{"ns/op", "B/op", "allocs/op"}

type metric struct {
	value float64
	unit  string
}

// benchmarkGoals are what was set out for a benchmark's metric, by name and unit.
var benchmarkGoals = map[string]string{
	"GrantRelease ns/op":           "under 500",
	"GrantRelease allocs/op":       "under 2",
	"HeldKeys B/key":               "under 300",
	"IdleConnections B/connection": "under 12,288",
	"Waiters B/waiter":             "under 1,024",
	"MassExpiry late-p99-ms":       "under 50",
	"MassExpiry others-p99-ms":     "under 5",
}

// parseBenchmark reads a line such as
//
//	BenchmarkGrantRelease-2   1000000   412 ns/op   1 allocs/op
func parseBenchmark(line string) (benchmark, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 {
		return benchmark{}, false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-")
	b := benchmark{name: name, once: fields[1] == "1"}
	for i := 2; i < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return benchmark{}, false
		}
		b.metrics = append(b.metrics, metric{value, fields[i+1]})
	}
	return b, true
}

func writeBenchmarks(out io.Writer, benchmarks []benchmark) {
	if len(benchmarks) == 0 {
		return
	}
	fmt.Fprint(out, "\n| benchmark | measured | goal |\n| --- | ---: | --- |\n")
	for _, b := range benchmarks {
		for _, m := range b.metrics {
			if b.once && slices.Contains(standardUnits, m.unit) {
				continue
			}
			fmt.Fprintf(out, "| %s | %s %s | %s |\n", b.name, metricValue(m.value), m.unit, benchmarkGoals[b.name+" "+m.unit])
		}
	}
}

// metricValue writes a figure with as many decimals as tell something.
func metricValue(value float64) string {
	if value >= 100 || value == float64(int64(value)) {
		return thousands(value)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
