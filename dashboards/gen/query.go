package main

import (
	"fmt"
	"strings"
)

// selected are the matchers of the nodes that the dashboard's variables choose.
const selected = `job="$job",instance=~"$instance"`

// window is as long as Grafana finds right for the time shown, and at least four scrapes.
const window = "[$__rate_interval]"

// query is one PromQL expression of a panel.
type query struct {
	expr, legend string
	exemplars    bool // show the traces of single acquires as well
}

// series selects a metric of the chosen nodes.
func series(name string, matchers ...string) string {
	return name + "{" + strings.Join(append([]string{selected}, matchers...), ",") + "}"
}

// whole selects what is true of a cluster, not of a node: only the node that leads knows it,
// so that of the others alone it would be wrong.
func whole(name string, matchers ...string) string {
	return name + "{" + strings.Join(append([]string{`job="$job"`}, matchers...), ",") + "}"
}

// aggregate makes one series of many, or one for each value of some labels.
func aggregate(operator, by, expr string) string {
	if by == "" {
		return operator + "(" + expr + ")"
	}
	return operator + " by (" + by + ") (" + expr + ")"
}

// total is the sum of a gauge.
func total(gauge string) string { return aggregate("sum", "", series(gauge)) }

// highest is the highest value of a gauge, in all or for each value of some labels.
func highest(gauge, by string, matchers ...string) string {
	return aggregate("max", by, series(gauge, matchers...))
}

// rate is how fast a counter rises, per second.
func rate(counter, by string, matchers ...string) string {
	return aggregate("sum", by, "rate("+series(counter, matchers...)+window+")")
}

// increase is by how much a counter rose.
func increase(counter, by string, matchers ...string) string {
	return aggregate("sum", by, "increase("+series(counter, matchers...)+window+")")
}

// quantile is a quantile of a histogram's classic buckets.
func quantile(q float64, histogram, by string, matchers ...string) string {
	labels := "le"
	if by != "" {
		labels += ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%g, %s)", q, rate(histogram+"_bucket", labels, matchers...))
}

// part is how much of a limit is in use, where it is most.
func part(use, limit, by string, matchers ...string) string {
	return aggregate("max", by, series(use, matchers...)+" / "+series(limit, matchers...))
}
