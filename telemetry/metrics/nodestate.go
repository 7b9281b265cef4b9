package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeState reads what is true of the node as a whole, and of its telemetry.
type nodeState struct {
	readings
	of                *Metrics
	version, revision string

	build, config, ready, notAfter reading
	recorded, dropped, failures    reading
}

func newNodeState(m *Metrics, c Config) *nodeState {
	s := &nodeState{of: m, version: c.Version, revision: c.Revision}
	s.build = s.gauge("ticketing_build_info", "1, with the program's version and revision and the Go that built it.", "version", "revision", "go")
	s.config = s.gauge("ticketing_config_info", "1, with a hash of the configuration in use.", "hash")
	s.ready = s.gauge("ticketing_ready", "Whether the node is ready for clients.")
	s.notAfter = s.gauge("ticketing_certificate_not_after_seconds", "Unix time until which a certificate is valid, for each that is configured.", "use")
	s.recorded = s.counter("ticketing_traces_recorded_total", "Traces that were recorded, by why.", "why")
	s.dropped = s.counter("ticketing_telemetry_dropped_total", "What was dropped so that telemetry holds nothing up: spans on their way to a collector, traces before they were built.", "signal")
	s.failures = s.counter("ticketing_telemetry_export_failures_total", "Batches of spans that a collector did not take.")
	return s
}

// Collect reads the node.
func (s *nodeState) Collect(ch chan<- prometheus.Metric) {
	from := s.of.sources.Load()
	hash, ready := "", false
	if from.ConfigHash != nil {
		hash = from.ConfigHash()
	}
	if from.Ready != nil {
		ready = from.Ready() == nil
	}
	s.build(ch, 1, s.version, s.revision, runtime.Version())
	s.config(ch, 1, hash)
	s.ready(ch, number(ready))
	if from.Certificates != nil {
		for _, c := range from.Certificates() {
			s.notAfter(ch, float64(c.NotAfter.Unix()), c.Use)
		}
	}
	var t Tracing
	if from.Tracing != nil {
		t = from.Tracing()
	}
	s.recorded(ch, float64(t.ByRatio), "ratio")
	s.recorded(ch, float64(t.BySlowness), "slow")
	s.recorded(ch, float64(t.ByDoubt), "unknown")
	s.recorded(ch, float64(t.ByLink), "link")
	s.dropped(ch, float64(t.DroppedSpans), "spans")
	s.dropped(ch, float64(t.DroppedTraces), "traces")
	s.failures(ch, float64(t.ExportFailures))
}
