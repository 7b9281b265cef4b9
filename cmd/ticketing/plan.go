package main

import (
	"fmt"
	"time"
)

// Bounds of the times by which a job is ended. The KILL comes before the lease's
// end by what it takes the kernel to end the processes: a killed process does nothing
// more, but on a crowded machine it may wait some hundred milliseconds for the
// processor to die. A short lease has less to give.
const (
	minKillMargin = 300 * time.Millisecond
	maxKillMargin = 2 * time.Second
	marginShare   = 10 // of the lease

	minKillAfter   = 100 * time.Millisecond
	maxKillAfter   = 10 * time.Second
	killAfterShare = 10 // of the lease
)

// endPlan says when a job is ended: how much of the lease is left when its
// processes are sent TERM, and KILL.
type endPlan struct{ term, kill time.Duration }

// planEnd makes the plan for a lease. killAfter is the time between TERM and KILL
// where given is true.
func planEnd(lease, killAfter time.Duration, given bool) (endPlan, error) {
	kill := min(max(lease/marginShare, minKillMargin), maxKillMargin)
	if !given {
		killAfter = min(max(lease/killAfterShare, minKillAfter), maxKillAfter)
	}
	if killAfter < 0 {
		return endPlan{}, fmt.Errorf("--kill-after %s is negative", killAfter)
	}
	if term := kill + killAfter; term < lease || lease <= 0 {
		return endPlan{term, kill}, nil // a lease of 0 is for the library to refuse
	}
	return endPlan{}, fmt.Errorf("--kill-after %s leaves the command no time: with --lease %s it must be under %s", killAfter, lease, lease-kill)
}
