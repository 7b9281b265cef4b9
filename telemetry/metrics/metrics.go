package metrics

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/core/server"
	"github.com/ticketing-io/ticketing/core/service"
)

const (
	// scrapesMax is how many scrapes may be answered at once. Two Prometheus servers and a
	// person are enough; the others are told to come back.
	scrapesMax = 4
	// scrapePatience bounds one scrape. Prometheus waits 10 s as it comes.
	scrapePatience = 10 * time.Second
)

// Config is what Metrics are made of.
type Config struct {
	// Clustered says that the node is one of a cluster: only then are there metrics of raft.
	Clustered bool
	// Version and Revision are the program's.
	Version, Revision string
	// Logger is told of scrapes that fail; nil for nobody.
	Logger *slog.Logger
}

// Metrics are the metrics of one node.
type Metrics struct {
	*Locks
	*Connections
	*Raft // nil on a single server

	registry *prometheus.Registry
	log      *slog.Logger
	sources  atomic.Pointer[Sources]
}

// Sources is where a scrape reads how things stand. Each function is called once a scrape,
// from any goroutine; it must return at once. What is nil reads as 0.
type Sources struct {
	Service func() service.Stats
	Server  func() server.Stats
	Replica func() replica.Stats // of a cluster's node
	// Ready tells why the node is not ready, nil when it is.
	Ready        func() error
	Tracing      func() Tracing
	Certificates func() []Certificate
	ConfigHash   func() string
}

// Tracing is what has become of traces since the start.
type Tracing struct {
	ByRatio, BySlowness, ByDoubt, ByLink uint64 // traces that were recorded, by why
	DroppedTraces                        uint64 // before they were built
	DroppedSpans                         uint64 // on their way to a collector
	ExportFailures                       uint64 // batches that a collector did not take
}

// Certificate is a certificate that the node shows.
type Certificate struct {
	Use      string // "client_listener", "cluster" or "admin"
	NotAfter time.Time
}

// New returns metrics that are all at 0.
func New(c Config) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), log: c.Logger}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.sources.Store(&Sources{})
	f := factory{m.registry}
	m.Locks, m.Connections = newLocks(f), newConnections(f)
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newServiceState(m), newServerState(m), newNodeState(m, c),
	)
	if c.Clustered {
		m.Raft = newRaft(f)
		m.registry.MustRegister(newRaftState(m))
	}
	return m
}

// Watch has scrapes read how things stand from here on.
func (m *Metrics) Watch(s Sources) { m.sources.Store(&s) }

// Gather returns what a scrape is answered.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	m.Settle()
	return m.registry.Gather()
}

// Handler returns what answers scrapes: OpenMetrics, protobuf (the one form that has native
// histograms) or Prometheus' text, as it is asked for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m, promhttp.HandlerOpts{
		Registry:            m.registry,
		ErrorLog:            slog.NewLogLogger(m.log.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError, // the rest is better than nothing
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: scrapesMax,
		Timeout:             scrapePatience,
	})
}
