package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// nativeFactor is how much wider each bucket of a native histogram is than the one
	// before, at most.
	nativeFactor = 1.1
	// nativeBuckets bounds the buckets of a native histogram: it gets coarser rather than
	// bigger. From 10 µs to 250 s there are about 200; few histograms use them all.
	nativeBuckets = 160
	// nativeReset is how soon a histogram that has got coarser may begin anew.
	nativeReset = time.Hour
)

// factory makes metrics in a node's registry. What has a label is made at once for each
// value that it may have.
type factory struct{ registry prometheus.Registerer }

func (f factory) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	f.registry.MustRegister(c)
	return c
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(c)
	return c
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(histogramOpts(name, help, buckets))
	f.registry.MustRegister(h)
	return h
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(histogramOpts(name, help, buckets), labels)
	f.registry.MustRegister(h)
	return h
}

// histogramOpts describes a histogram that is classic and native side by side: classic
// buckets are what every Prometheus can read.
func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     nativeFactor,
		NativeHistogramMaxBucketNumber:  nativeBuckets,
		NativeHistogramMinResetDuration: nativeReset,
	}
}

// The classic buckets' upper bounds.
var (
	waitBuckets  = []float64{1e-5, 1e-4, 5e-4, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 250}
	holdBuckets  = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 20, 30, 60, 90, 120, 180, 250, 300}
	lagBuckets   = []float64{1e-4, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	depthBuckets = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
	diskBuckets  = []float64{5e-5, 1e-4, 2.5e-4, 5e-4, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	applyBuckets = []float64{1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, .001, .005, .01, .05, .1, .5, 1}
	saveBuckets  = []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	batchBuckets = prometheus.ExponentialBuckets(1, 2, 11) // to 1024
)
