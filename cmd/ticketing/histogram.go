package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram keeps durations in buckets whose width grows with the value: each
// power of two is cut into 1<<subBits buckets, so a value is known to 3 %, in
// 10 KiB, whatever comes. The longest value has a bucket of its own.
const (
	subBits    = 5
	subBuckets = 1 << subBits
	// maxExponent bounds the values to 2^40 ns, 18 minutes: longer than the longest
	// wait. What is above counts as that.
	maxExponent = 40
	buckets     = (maxExponent - subBits + 1) * subBuckets
)

// histogram counts durations, from any number of goroutines. Its zero value is
// empty.
type histogram struct {
	counts [buckets]atomic.Uint64
	max    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
	h.raise(int64(d))
}

func (h *histogram) raise(to int64) {
	for {
		now := h.max.Load()
		if to <= now || h.max.CompareAndSwap(now, to) {
			return
		}
	}
}

// merge adds what other has counted.
func (h *histogram) merge(other *histogram) {
	for i := range other.counts {
		h.counts[i].Add(other.counts[i].Load())
	}
	h.raise(other.max.Load())
}

// longest returns the longest duration.
func (h *histogram) longest() time.Duration { return time.Duration(h.max.Load()) }

// quantile returns the value that a share q of all values is not above, rounded up
// to its bucket's end, and 0 when there is none.
func (h *histogram) quantile(q float64) time.Duration {
	var total uint64
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	if total == 0 {
		return 0
	}
	rank := min(uint64(q*float64(total)), total-1)
	var seen uint64
	i := 0
	for ; seen <= rank; i++ {
		seen += h.counts[i].Load()
	}
	return min(bucketEnd(i-1), h.longest())
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < subBuckets {
		return int(v)
	}
	exponent := bits.Len64(v) - 1
	if exponent >= maxExponent {
		return buckets - 1
	}
	shift := exponent - subBits
	return (shift+1)*subBuckets + int(v>>shift) - subBuckets
}

// bucketEnd returns the largest value of bucket i.
func bucketEnd(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i)
	}
	shift := i/subBuckets - 1
	base := uint64(i%subBuckets+subBuckets) << shift
	return time.Duration(base + 1<<shift - 1)
}
