package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ticketing-io/ticketing/core/server"
	"github.com/ticketing-io/ticketing/core/service"
)

// readings are metrics that are read at each scrape. What makes them a collector embeds
// them.
type readings struct{ descriptions []*prometheus.Desc }

// Describe tells which metrics there are.
func (r *readings) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range r.descriptions {
		ch <- d
	}
}

// reading sends a metric's value.
type reading func(ch chan<- prometheus.Metric, value float64, labels ...string)

func (r *readings) gauge(name, help string, labels ...string) reading {
	return r.add(prometheus.GaugeValue, name, help, labels)
}

func (r *readings) counter(name, help string, labels ...string) reading {
	return r.add(prometheus.CounterValue, name, help, labels)
}

func (r *readings) add(kind prometheus.ValueType, name, help string, labels []string) reading {
	d := prometheus.NewDesc(name, help, labels, nil)
	r.descriptions = append(r.descriptions, d)
	return func(ch chan<- prometheus.Metric, value float64, values ...string) {
		m, err := prometheus.NewConstMetric(d, kind, value, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err) // a panic here would end the process
		}
		ch <- m
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// The gates close at nine tenths of their limit and open again below three quarters
// (docs/PROTOCOL.md, section 4).
const (
	closeRatio = 0.90
	openRatio  = 0.75
)

// serviceState reads how the service stands.
type serviceState struct {
	readings
	of *Metrics

	held, waiters, longest, oldest     reading
	state, limit, use, closeAt, openAt reading
	laneUse, laneLimit, draining       reading
}

func newServiceState(m *Metrics) *serviceState {
	s := &serviceState{of: m}
	s.held = s.gauge("ticketing_keys_held", "Keys that have a grant.")
	s.waiters = s.gauge("ticketing_waiters", "Acquires that wait in a queue.")
	s.longest = s.gauge("ticketing_longest_queue", "Waiters of the key that has the most.")
	s.oldest = s.gauge("ticketing_oldest_waiter_seconds", "How long the acquire waits that has waited longest; 0 when none does.")
	s.state = s.gauge("ticketing_admission_state", "Whether a gate of admission is closed: 0 open, 1 closed.", "gate")
	s.limit = s.gauge("ticketing_admission_limit", "The limit that a gate guards.", "gate")
	s.use = s.gauge("ticketing_admission_in_use", "How much of its limit is in use, as a gate counts.", "gate")
	s.closeAt = s.gauge("ticketing_admission_close_ratio", "The part of its limit at which a gate closes.")
	s.openAt = s.gauge("ticketing_admission_open_ratio", "The part of its limit below which a closed gate opens.")
	s.laneUse = s.gauge("ticketing_lane_in_use", "Requests in flight, by lane.", "lane")
	s.laneLimit = s.gauge("ticketing_lane_limit", "Requests that may be in flight, by lane.", "lane")
	s.draining = s.gauge("ticketing_draining", "Whether the node stops, or hands its leadership over.")
	return s
}

// Collect reads the service.
func (s *serviceState) Collect(ch chan<- prometheus.Metric) {
	var st service.Stats
	if read := s.of.sources.Load().Service; read != nil {
		st = read()
	}
	s.held(ch, float64(st.Held))
	s.waiters(ch, float64(st.Waiters))
	s.longest(ch, float64(st.LongestQueue))
	s.oldest(ch, st.OldestWait.Seconds())
	for _, g := range gates {
		gate := st.Gates[g]
		s.state(ch, number(gate.Closed), g.String())
		s.limit(ch, float64(gate.Limit), g.String())
		s.use(ch, float64(gate.Use), g.String())
	}
	s.closeAt(ch, closeRatio)
	s.openAt(ch, openRatio)
	s.laneUse(ch, float64(st.Acquires), "acquire")
	s.laneUse(ch, float64(st.Releases), "release")
	s.laneLimit(ch, float64(st.Limits.Acquires), "acquire")
	s.laneLimit(ch, float64(st.Limits.Releases), "release")
	s.draining(ch, number(st.Draining))
}

// serverState reads how the connections stand.
type serverState struct {
	readings
	of                                   *Metrics
	open, limit, received, sent, pending reading
}

func newServerState(m *Metrics) *serverState {
	s := &serverState{of: m}
	s.open = s.gauge("ticketing_connections_open", "Open connections of clients, those in their handshake included.")
	s.limit = s.gauge("ticketing_connections_limit", "How many connections may be open.")
	s.received = s.counter("ticketing_received_bytes_total", "Bytes received from clients, handshakes and TLS included.")
	s.sent = s.counter("ticketing_sent_bytes_total", "Bytes sent to clients, handshakes and TLS included.")
	s.pending = s.gauge("ticketing_pending_replies", "Answers that are decided and not being sent yet, of all connections.")
	return s
}

// Collect reads the server.
func (s *serverState) Collect(ch chan<- prometheus.Metric) {
	var st server.Stats
	if read := s.of.sources.Load().Server; read != nil {
		st = read()
	}
	s.open(ch, float64(st.Connections))
	s.limit(ch, float64(st.Limit))
	s.received(ch, float64(st.Received))
	s.sent(ch, float64(st.Sent))
	s.pending(ch, float64(st.Pending))
}
