package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowLocker grants after a fixed time, in fake time.
type slowLocker struct {
	took  time.Duration
	fails error
}

func (s slowLocker) lock(ctx context.Context, _ string) (func() error, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.took):
		return func() error { return s.fails }, nil
	}
}

func TestLoopMeasuresPairsAndLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(context.Context, []string) (locker, error) {
			return slowLocker{took: 10 * time.Millisecond}, nil
		}
		m, err := measure(t.Context(), open, nil, 4, 0, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		// 4 workers with 100 pairs a second each; what ends at the very moment at
		// which the measured time begins or ends may count or not.
		if m.Pairs < 396 || m.Pairs > 404 || m.Seconds != 1 {
			t.Errorf("%d pairs in %v s, want 400 in 1 s", m.Pairs, m.Seconds)
		}
		if want := (latency{10_000, 10_000, 10_000}); m.Acquire != want {
			t.Errorf("latency %+v, want %+v", m.Acquire, want)
		}
		if m.Workers != 4 || m.Keys != 4 {
			t.Errorf("%d workers on %d keys, want 4 on 4", m.Workers, m.Keys)
		}
	})
}

// A rate with errors in it compares nothing, and a peer that hangs must not hang
// the run.
func TestLoopFailsWithItsPeer(t *testing.T) {
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		client locker
		want   string
	}{
		"an error":  {slowLocker{took: time.Millisecond, fails: broken}, "release bench-0: connection reset"},
		"a hang":    {slowLocker{took: time.Hour}, "context deadline exceeded"},
		"no answer": {slowLocker{took: 3 * time.Second}, "no pair ended"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				length := time.Second
				if name == "a hang" {
					length = time.Minute
				}
				open := func(context.Context, []string) (locker, error) { return c.client, nil }
				_, err := measure(ctx, open, nil, 1, 1, length)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}
