package main

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A quantile is never below the true one, and at most a bucket's width above it.
func TestHistogramAgreesWithASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<maxExponent-1), 1, 200).Draw(t, "values")
		var a, b histogram
		for i, v := range values {
			if i%2 == 0 {
				a.add(time.Duration(v))
			} else {
				b.add(time.Duration(v))
			}
		}
		a.merge(&b)
		slices.Sort(values)
		q := rapid.Float64Range(0, 1).Draw(t, "quantile")
		want := values[min(int(q*float64(len(values))), len(values)-1)]
		got := int64(a.quantile(q))
		if got < want || got > want+want/subBuckets {
			t.Fatalf("quantile %v is %d, want %d to a part in %d", q, got, want, subBuckets)
		}
		if largest := values[len(values)-1]; int64(a.longest()) != largest {
			t.Fatalf("max is %d, want %d", a.longest(), largest)
		}
	})
}

func TestHistogramTakesAnyDuration(t *testing.T) {
	var h histogram
	if got := h.quantile(.5); got != 0 {
		t.Errorf("quantile of nothing is %s", got)
	}
	for _, d := range []time.Duration{-1, 0, 1, 1 << 62} {
		h.add(d)
	}
	if h.quantile(1) != bucketEnd(buckets-1) || h.longest() != 1<<62 {
		t.Errorf("quantile %s, max %s", h.quantile(1), h.longest())
	}
}

func TestBucketsFollowOneAnother(t *testing.T) {
	for i := range buckets {
		if got := bucketOf(bucketEnd(i)); got != i {
			t.Fatalf("the end of bucket %d is in bucket %d", i, got)
		}
		if i+1 < buckets && bucketOf(bucketEnd(i)+1) != i+1 {
			t.Fatalf("behind bucket %d comes %d", i, bucketOf(bucketEnd(i)+1))
		}
	}
}
