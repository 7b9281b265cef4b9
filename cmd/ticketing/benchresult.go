package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// benchResult is what bench prints.
type benchResult struct {
	Workers        int              `json:"workers"`
	Keys           int              `json:"keys"`
	Connections    int              `json:"connections"`
	Pipeline       int              `json:"pipeline"`
	Seconds        seconds          `json:"seconds"`
	Pairs          int64            `json:"pairs"`
	PairsPerSecond int64            `json:"pairs_per_second"`
	Acquire        benchLatency     `json:"acquire_us"`
	Errors         map[string]int64 `json:"errors"`
	DoubleGrants   int64            `json:"double_grants"`
	FallingTokens  int64            `json:"falling_tokens"`
}

// benchLatency is in microseconds.
type benchLatency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// result adds the loops' figures up. It is called after run.
func (b *benchmark) result() benchResult {
	r := benchResult{
		Workers:     b.plan.workers,
		Keys:        len(b.keys),
		Connections: b.plan.connections,
		Pipeline:    b.plan.pipeline,
		Seconds:     seconds(b.took),
		Pairs:       b.pairs(),
		Errors:      map[string]int64{},
	}
	r.PairsPerSecond = int64(float64(r.Pairs) / b.took.Seconds())
	for i := range b.loops {
		l := &b.loops[i]
		for kind, n := range l.errors {
			r.Errors[kind] += n
		}
		r.DoubleGrants += l.double
		r.FallingTokens += l.falling
	}
	var all histogram
	for i := range b.latency {
		all.merge(&b.latency[i])
	}
	r.Acquire = benchLatency{micros(all.quantile(.5)), micros(all.quantile(.99)), micros(all.quantile(.999)), micros(all.longest())}
	return r
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// print writes the result for people.
func (r benchResult) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "workers\t%d\n", r.Workers)
	fmt.Fprintf(t, "keys\t%d\n", r.Keys)
	fmt.Fprintf(t, "connections\t%d\n", r.Connections)
	fmt.Fprintf(t, "pipeline\t%d\n", r.Pipeline)
	fmt.Fprintf(t, "time\t%s\n", time.Duration(r.Seconds).Round(time.Millisecond))
	fmt.Fprintf(t, "pairs\t%d\n", r.Pairs)
	fmt.Fprintf(t, "pairs per second\t%d\n", r.PairsPerSecond)
	for _, q := range []struct {
		name  string
		value float64
	}{{"p50", r.Acquire.P50}, {"p99", r.Acquire.P99}, {"p99.9", r.Acquire.P999}, {"max", r.Acquire.Max}} {
		fmt.Fprintf(t, "acquire %s\t%.0f µs\n", q.name, q.value)
	}
	if len(r.Errors) == 0 {
		fmt.Fprintf(t, "errors\tnone\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(t, "errors: %s\t%d\n", kind, r.Errors[kind])
	}
	fmt.Fprintf(t, "held twice\t%d\n", r.DoubleGrants)
	fmt.Fprintf(t, "tokens not rising\t%d\n", r.FallingTokens)
	return printed(t.Flush())
}

// fault is nil when the server did what it promises.
func (r benchResult) fault() error {
	switch {
	case r.DoubleGrants > 0 || r.FallingTokens > 0:
		return &fault{exitError, fmt.Errorf("%d grants of a key that was held, %d tokens that did not rise", r.DoubleGrants, r.FallingTokens),
			advice{"The server broke its promise: two held one lock at the same time.", "If the server was started again meanwhile, that is why: a plain single server keeps nothing. Else report it."}}
	case r.Pairs == 0:
		return &fault{exitError, errors.New("not one pair succeeded"),
			advice{"Nothing was measured.", "Look at the errors above."}}
	}
	return nil
}
