package main

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// For every lease there is time to work, then TERM, then KILL, then the end.
func TestDefaultEndPlanFitsEveryLease(t *testing.T) {
	for s := 1; s <= 250; s++ {
		lease := time.Duration(s) * time.Second
		plan, err := planEnd(lease, 0, false)
		if err != nil {
			t.Fatalf("lease %s: %v", lease, err)
		}
		if plan.kill < minKillMargin || plan.term < plan.kill+minKillAfter || plan.term > lease*4/10 {
			t.Errorf("lease %s: TERM %s and KILL %s before its end", lease, plan.term, plan.kill)
		}
	}
}

// The table in run's help and in docs/COMMANDS.md.
func TestDocumentedEndPlans(t *testing.T) {
	for _, c := range []struct{ lease, kill, killAfter time.Duration }{
		{time.Second, 300 * time.Millisecond, 100 * time.Millisecond},
		{10 * time.Second, time.Second, time.Second},
		{30 * time.Second, 2 * time.Second, 3 * time.Second},
		{250 * time.Second, 2 * time.Second, 10 * time.Second},
	} {
		plan, err := planEnd(c.lease, 0, false)
		if err != nil || plan.kill != c.kill || plan.term-plan.kill != c.killAfter {
			t.Errorf("lease %s: %+v, %v", c.lease, plan, err)
		}
	}
}

func TestGivenKillAfterIsKeptOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease := time.Duration(rapid.IntRange(1, 250).Draw(t, "lease")) * time.Second
		killAfter := time.Duration(rapid.Int64Range(int64(-time.Second), int64(260*time.Second)).Draw(t, "kill after"))
		plan, err := planEnd(lease, killAfter, true)
		if err != nil {
			if fallback, _ := planEnd(lease, 0, true); killAfter >= 0 && fallback.kill+killAfter < lease {
				t.Fatalf("refused although it fits: %v", err)
			}
			return
		}
		if plan.term-plan.kill != killAfter || plan.term >= lease || plan.kill <= 0 {
			t.Fatalf("plan %+v", plan)
		}
	})
}
