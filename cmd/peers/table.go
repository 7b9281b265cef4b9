package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// workload is one line of the table of measurements; its name is how a script
// records it.
type workload struct{ name, title string }

var workloads = []workload{
	{"echo-4", "floor: 4 echo connections"},
	{"echo-16", "floor: 16 echo connections"},
	{"echo-64", "floor: 64 echo connections"},
	{"echo-256", "floor: 256 echo connections"},
	{"ticketing-16", "Ticketing: 16 connections, a key each"},
	{"redis-16", "Redis: 16 connections, a key each"},
	{"etcd-16", "etcd: 16 clients, a key each"},
	{"zookeeper-16", "ZooKeeper: 16 clients, a key each"},
	{"ticketing-16-on-4", "Ticketing: 16 connections on 4 keys"},
	{"broker-64", "Ticketing: 64 goroutines, a key each, one shared broker"},
	{"broker-64-try", "Ticketing: the same, immediate attempts (wait 0)"},
	{"broker-256", "Ticketing: 256 goroutines, a key each, one shared broker"},
	{"broker-256-try", "Ticketing: the same, immediate attempts (wait 0)"},
	{"broker-4-on-4", "Ticketing: 4 goroutines on 4 keys, one shared broker, 40,000 pairs"},
	{"broker-64-on-32", "Ticketing: 64 goroutines on 32 keys, one shared broker, 40,000 pairs"},

	{"untold-16", "Ticketing, 16 connections: built without observers"},
	{"untold-again-16", "Ticketing, 16 connections: the same again"},
	{"metrics-16", "Ticketing, 16 connections: metrics, nothing traced"},
	{"traced-16", "Ticketing, 16 connections: as it comes, metrics and 1 % traced, in memory"},
	{"sent-16", "Ticketing, 16 connections: 1 % traced, to a receiver"},
	{"hanging-16", "Ticketing, 16 connections: 1 % traced, to a receiver that hangs"},
	{"all-sent-16", "Ticketing, 16 connections: 100 % traced, to a receiver"},

	{"cluster-1", "Ticketing, three nodes: 1 connection"},
	{"etcd3-1", "etcd, three nodes: 1 client"},
	{"cluster-16", "Ticketing, three nodes: 16 connections, a key each"},
	{"etcd3-16", "etcd, three nodes: 16 clients, a key each"},
	{"cluster-64", "Ticketing, three nodes: 64 connections, a key each"},
	{"etcd3-64", "etcd, three nodes: 64 clients, a key each"},
	{"cluster-256", "Ticketing, three nodes: 256 connections, a key each"},
	{"etcd3-256", "etcd, three nodes: 256 clients, a key each"},
	{"cluster-16-on-4", "Ticketing, three nodes: 16 connections on 4 keys"},
	{"etcd3-16-on-4", "etcd, three nodes: 16 clients on 4 keys"},
	{"cluster-broker-64-on-32", "Ticketing, three nodes: 64 goroutines on 32 keys, one shared broker, 40,000 pairs"},
	{"etcd3-64-on-32", "etcd, three nodes: 64 clients on 32 keys"},
	{"cluster-64-up", "Ticketing, three nodes: 64 connections, all nodes up"},
	{"cluster-64-slow", "Ticketing, three nodes: 64 connections, a follower stopped (SIGSTOP)"},
	{"cluster-64-down", "Ticketing, three nodes: 64 connections, a follower killed"},
}

// figure is one number of a measurement.
type figure struct {
	workload string
	of       func(recorded) float64
}

func rate(workload string) figure {
	return figure{workload, func(r recorded) float64 { return r.PairsPerSecond }}
}

func p50(workload string) figure {
	return figure{workload, func(r recorded) float64 { return r.Acquire.P50 }}
}

func p99(workload string) figure {
	return figure{workload, func(r recorded) float64 { return r.Acquire.P99 }}
}

// ratio compares two figures of the same round.
type ratio struct {
	title string
	a, b  figure // a divided by b
	goal  string
}

var ratios = []ratio{
	{"16 connections, a key each: Ticketing to the floor", rate("ticketing-16"), rate("echo-16"), "at least 0.90"},
	{"16 connections, a key each: Ticketing to Redis", rate("ticketing-16"), rate("redis-16"), "at least 1.4"},
	{"16 connections, a key each: Redis to the floor", rate("redis-16"), rate("echo-16"), ""},
	{"16 clients, a key each: etcd to the floor", rate("etcd-16"), rate("echo-16"), ""},
	{"16 clients, a key each: ZooKeeper to the floor", rate("zookeeper-16"), rate("echo-16"), ""},
	{"16 connections on 4 keys: Ticketing to the floor", rate("ticketing-16-on-4"), rate("echo-16"), "at least 0.75"},
	{"16 connections on 4 keys: acquire p99 to its p50", p99("ticketing-16-on-4"), p50("ticketing-16-on-4"), "under 10"},
	{"one broker: 64 goroutines to 64 echo connections", rate("broker-64"), rate("echo-64"), "at least 4"},
	{"one broker: 64 goroutines, immediate attempts, to 64 echo connections", rate("broker-64-try"), rate("echo-64"), "at least 4"},
	{"one broker: 256 goroutines to 256 echo connections", rate("broker-256"), rate("echo-256"), "at least 8"},
	{"one broker: 256 goroutines, immediate attempts, to 256 echo connections", rate("broker-256-try"), rate("echo-256"), "at least 8"},
	{"one broker: 4 goroutines on 4 keys to 4 echo connections", rate("broker-4-on-4"), rate("echo-4"), ""},
	{"one broker: 64 goroutines on 32 keys to 64 echo connections", rate("broker-64-on-32"), rate("echo-64"), ""},

	{"three nodes, 1 worker, acquire p50: Ticketing to etcd", p50("cluster-1"), p50("etcd3-1"), "at most 0.5"},
	{"three nodes, 1 worker: Ticketing to etcd", rate("cluster-1"), rate("etcd3-1"), ""},
	{"three nodes, 16 workers: Ticketing to etcd", rate("cluster-16"), rate("etcd3-16"), "at least 8"},
	{"three nodes, 64 workers: Ticketing to etcd", rate("cluster-64"), rate("etcd3-64"), "at least 12"},
	{"three nodes, 256 workers: Ticketing to etcd", rate("cluster-256"), rate("etcd3-256"), "at least 20"},
	{"three nodes, 16 workers on 4 keys: Ticketing to etcd", rate("cluster-16-on-4"), rate("etcd3-16-on-4"), "at least 12"},
	{"three nodes, 64 workers on 32 keys: Ticketing's shared broker to etcd", rate("cluster-broker-64-on-32"), rate("etcd3-64-on-32"), ""},
	{"three nodes, 64 workers: a follower stopped, to all up", rate("cluster-64-slow"), rate("cluster-64-up"), "at least 0.90"},
	{"three nodes, 64 workers: a follower killed, to all up", rate("cluster-64-down"), rate("cluster-64-up"), "at least 0.90"},
}

// telemetryRatios are what telemetry costs, with more decimals: it is little.
var telemetryRatios = []ratio{
	{"the control: without observers again, to without observers", rate("untold-again-16"), rate("untold-16"), "1, as near as the machine is calm"},
	{"metrics, to without observers", rate("metrics-16"), rate("untold-16"), "at least 0.970"},
	{"1 % traced in memory, to without observers", rate("traced-16"), rate("untold-16"), "at least 0.940"},
	{"1 % traced in memory, to metrics", rate("traced-16"), rate("metrics-16"), "at least 0.970"},
	{"1 % to a receiver, to without observers", rate("sent-16"), rate("untold-16"), "at least 0.940"},
	{"1 % to a receiver that hangs, to without observers", rate("hanging-16"), rate("untold-16"), "at least 0.940"},
	{"1 % to a receiver that hangs, to one that answers", rate("hanging-16"), rate("sent-16"), "1, as the control"},
	{"100 % to a receiver, to without observers", rate("all-sent-16"), rate("untold-16"), "at least 0.650"},
}

// recorded is one measurement as a script records it: what peers run and
// ticketing bench have in common.
type recorded struct {
	PairsPerSecond float64          `json:"pairs_per_second"`
	Acquire        latency          `json:"acquire_us"`
	Errors         map[string]int64 `json:"errors"`
}

// rounds are the measurements of a run: workload, then round.
type rounds map[string]map[int]recorded

func tableCommand(path string, out io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	run, figures, benchmarks, err := readRun(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	writeMeasurements(out, run)
	writeRatios(out, run, ratios, 2)
	writeRatios(out, run, telemetryRatios, 3)
	writeErrors(out, run)
	writeFigures(out, figures)
	writeBenchmarks(out, benchmarks)
	return nil
}

// readRun reads what a script recorded: a line of JSON for each
// measurement and each figure, and the lines of Go's benchmarks as they are.
func readRun(r io.Reader) (rounds, map[string][]float64, []benchmark, error) {
	run, figures := rounds{}, map[string][]float64{}
	var benchmarks []benchmark
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "{"):
			var m struct {
				Workload string
				Round    int
				Result   recorded
				Figure   string // in place of the three above
				Value    float64
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				return nil, nil, nil, fmt.Errorf("measurement %q: %w", line, err)
			}
			if m.Figure != "" {
				figures[m.Figure] = append(figures[m.Figure], m.Value)
				continue
			}
			if run[m.Workload] == nil {
				run[m.Workload] = map[int]recorded{}
			}
			run[m.Workload][m.Round] = m.Result
		case strings.HasPrefix(line, "Benchmark"):
			if b, ok := parseBenchmark(line); ok {
				benchmarks = append(benchmarks, b)
			}
		}
	}
	return run, figures, benchmarks, lines.Err()
}

func writeMeasurements(out io.Writer, run rounds) {
	fmt.Fprint(out, "| workload | pairs/s | lowest to highest | acquire p50 | acquire p99 |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, w := range workloads {
		if len(run[w.name]) == 0 {
			continue
		}
		rates := run.all(rate(w.name))
		fmt.Fprintf(out, "| %s | %s | %s to %s | %s µs | %s µs |\n", w.title, thousands(median(rates)),
			thousands(slices.Min(rates)), thousands(slices.Max(rates)),
			thousands(median(run.all(p50(w.name)))), thousands(median(run.all(p99(w.name)))))
	}
}

// writeRatios writes the table of those ratios that were measured, if any.
func writeRatios(out io.Writer, run rounds, list []ratio, decimals int) {
	heading := "\n| ratio | measured | lowest to highest | goal |\n| --- | ---: | ---: | --- |\n"
	for _, r := range list {
		values := run.ratios(r)
		if len(values) == 0 {
			continue
		}
		fmt.Fprintf(out, "%s| %s | %.*f | %.*f to %.*f | %s |\n", heading, r.title, decimals, median(values),
			decimals, slices.Min(values), decimals, slices.Max(values), r.goal)
		heading = ""
	}
}

// writeErrors says which figures are worth less: errors happened in them.
func writeErrors(out io.Writer, run rounds) {
	for _, w := range workloads {
		for _, round := range slices.Sorted(maps.Keys(run[w.name])) {
			errors := run[w.name][round].Errors
			for _, kind := range slices.Sorted(maps.Keys(errors)) {
				fmt.Fprintf(out, "\n%s, round %d: %d errors of kind %s\n", w.title, round, errors[kind], kind)
			}
		}
	}
}

// all returns a figure of each round.
func (run rounds) all(f figure) []float64 {
	var values []float64
	for _, m := range run[f.workload] {
		values = append(values, f.of(m))
	}
	return values
}

// ratios returns the ratio in each round that has both figures.
func (run rounds) ratios(r ratio) []float64 {
	var values []float64
	for round, m := range run[r.a.workload] {
		if base, ok := run[r.b.workload][round]; ok && r.b.of(base) > 0 {
			values = append(values, r.a.of(m)/r.b.of(base))
		}
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// thousands writes a figure without decimals, its digits in groups of three.
func thousands(value float64) string {
	digits := fmt.Sprintf("%.0f", value)
	var grouped strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			grouped.WriteByte(',')
		}
		grouped.WriteRune(digit)
	}
	return grouped.String()
}
