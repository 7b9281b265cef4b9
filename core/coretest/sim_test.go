package coretest

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// defaultRuns is how many simulations a plain test runs.
const defaultRuns = 3

// setting returns a number from the environment, or another one.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSimulations: whatever happens to a cluster's network, disks and processes, what clients
// are told is what a lock would tell them, and a mended cluster serves again. SEED repeats a
// schedule of accidents and a workload, RUNS says how many follow on it ("make sim").
func TestSimulations(t *testing.T) {
	seed := setting(t, "SEED", uint64(time.Now().UnixMicro()))
	for i := range setting(t, "RUNS", defaultRuns) {
		t.Run(strconv.FormatUint(seed+i, 10), func(t *testing.T) { simulate(t, DefaultSimulation(seed+i)) })
	}
}

func simulate(t *testing.T, s Simulation) {
	var r Result
	logs := logTo(t, &s.Config)
	synctest.Test(t, func(*testing.T) { r = s.Run() })
	err := r.Err
	if err == nil {
		err = CheckModel(r.Cluster.History.Operations())
	}
	t.Logf("SEED=%d: %v of %d nodes, %d reigns, %v of tenure time", s.Seed, r.Cluster.History.Count(), s.Nodes, r.Cluster.Ledger.Reigns(), r.Cluster.Ledger.Now())
	if err != nil {
		t.Errorf("SEED=%d: %v\n%s", s.Seed, err, strings.Join(r.Accident, "\n"))
		keep(t, r, logs)
	}
}
