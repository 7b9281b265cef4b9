package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// locker is one worker's view of a lock service.
type locker interface {
	// lock blocks until key is held and returns the function that gives it back.
	// Both end when the ctx that the locker was opened with does.
	lock(ctx context.Context, key string) (unlock func() error, err error)
}

// measurement is what one run of the loop comes to. Its JSON has the names of
// ticketing bench --json.
type measurement struct {
	Peer           string  `json:"peer"`
	Workers        int     `json:"workers"`
	Keys           int     `json:"keys"` // as many as workers where each has its own
	Pairs          int     `json:"pairs"`
	Seconds        float64 `json:"seconds"`
	PairsPerSecond float64 `json:"pairs_per_second"`
	Acquire        latency `json:"acquire_us"`
	DoubleGrants   int64   `json:"double_grants"`
}

// latency is in microseconds.
type latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// loop is what all workers of one measurement share.
type loop struct {
	keys         []string
	ownKey       bool // each worker has a key of its own
	held         []atomic.Int32
	doubleGrants atomic.Int64
	measuring    atomic.Bool
	stop         atomic.Bool
}

// measure runs the loop for a fifth of length as a warm-up, then for length. An
// error of any worker is the measurement's: a rate with errors in it compares
// nothing.
func measure(ctx context.Context, open func(context.Context, []string) (locker, error), addrs []string,
	workers, keys int, length time.Duration) (measurement, error) {
	l := newLoop(workers, keys)
	lockers := make([]locker, workers)
	for w := range lockers {
		var err error
		if lockers[w], err = open(ctx, addrs); err != nil {
			return measurement{}, fmt.Errorf("worker %d: %w", w, err)
		}
	}

	samples := make([][]time.Duration, workers)
	failures := make(chan error, workers)
	var running sync.WaitGroup
	for w, client := range lockers {
		running.Go(func() {
			var err error
			if samples[w], err = l.work(ctx, client, w); err != nil {
				failures <- fmt.Errorf("worker %d: %w", w, err)
			}
		})
	}

	failure := sleepUnless(ctx, failures, length/5)
	l.measuring.Store(true)
	start := time.Now()
	if failure == nil {
		failure = sleepUnless(ctx, failures, length)
	}
	l.measuring.Store(false)
	took := time.Since(start)
	l.stop.Store(true)
	running.Wait() // every locker ends with ctx
	if failure != nil {
		return measurement{}, failure
	}
	m, err := l.result(slices.Concat(samples...), took)
	m.Workers, m.Keys = workers, len(l.keys)
	return m, err
}

func newLoop(workers, keys int) *loop {
	l := &loop{ownKey: keys == 0}
	if keys == 0 {
		keys = workers
	}
	l.held = make([]atomic.Int32, keys)
	for k := range keys {
		l.keys = append(l.keys, fmt.Sprintf("bench-%d", k))
	}
	return l
}

// work takes and gives back one key after the other until the loop stops. It
// returns how long each acquire took whose pair ended in the measured time.
func (l *loop) work(ctx context.Context, client locker, worker int) ([]time.Duration, error) {
	var samples []time.Duration
	for i := 0; !l.stop.Load(); i++ {
		k := worker
		if !l.ownKey {
			k = (worker + i) % len(l.keys)
		}
		start := time.Now()
		unlock, err := client.lock(ctx, l.keys[k])
		if err != nil {
			return nil, fmt.Errorf("acquire %s: %w", l.keys[k], err)
		}
		took := time.Since(start)
		if l.held[k].Add(1) != 1 {
			l.doubleGrants.Add(1)
		}
		l.held[k].Add(-1)
		if err := unlock(); err != nil {
			return nil, fmt.Errorf("release %s: %w", l.keys[k], err)
		}
		if l.measuring.Load() {
			samples = append(samples, took)
		}
	}
	return samples, nil
}

func sleepUnless(ctx context.Context, failures <-chan error, d time.Duration) error {
	select {
	case err := <-failures:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (l *loop) result(samples []time.Duration, took time.Duration) (measurement, error) {
	if len(samples) == 0 {
		return measurement{}, errors.New("no pair ended in the measured time")
	}
	slices.Sort(samples)
	at := func(quantile float64) float64 {
		return float64(samples[int(quantile*float64(len(samples)-1))]) / float64(time.Microsecond)
	}
	return measurement{
		Pairs:          len(samples),
		Seconds:        took.Seconds(),
		PairsPerSecond: float64(len(samples)) / took.Seconds(),
		Acquire:        latency{at(.5), at(.99), at(.999)},
		DoubleGrants:   l.doubleGrants.Load(),
	}, nil
}
