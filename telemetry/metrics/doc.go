// Package metrics counts what a node does, for Prometheus. Each node has a registry of its
// own. What happens often is told to Locks, Connections and Raft, which are what core's
// observers want; how things stand is read of Sources at each scrape. docs/METRICS.md lists
// every metric.
//
// No label has a value that clients choose. Every value of a label is there from the start,
// at 0, so that a rate has no gap before its first event.
package metrics
