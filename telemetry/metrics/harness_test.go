package metrics

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/ticketing-io/ticketing/core/replica"
)

// ofCluster returns fresh metrics of a cluster's node, with a member and certificates, so
// that every metric has a series.
func ofCluster() *Metrics {
	m := New(Config{Clustered: true, Version: "1.2.3", Revision: "abc"})
	m.Watch(Sources{
		Replica: func() replica.Stats { return replica.Stats{Peers: []replica.PeerLag{{ID: "b"}}} },
		Certificates: func() []Certificate {
			return []Certificate{{"client_listener", time.Unix(1, 0)}, {"cluster", time.Unix(2, 0)}, {"admin", time.Unix(3, 0)}}
		},
	})
	return m
}

// families returns what a scrape of the registry finds.
func families(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*dto.MetricFamily)
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all
}

// value returns the value, or the number of observations, of the one series with these
// label values, in the order of the labels' names.
func value(t *testing.T, m *Metrics, name string, labels ...string) float64 {
	t.Helper()
	for _, s := range families(t, m)[name].GetMetric() {
		if len(s.GetLabel()) != len(labels) {
			continue
		}
		same := true
		for i, l := range s.GetLabel() {
			same = same && l.GetValue() == labels[i]
		}
		if same {
			return read(s)
		}
	}
	t.Fatalf("there is no %s%v", name, labels)
	return 0
}

func read(s *dto.Metric) float64 {
	switch {
	case s.Counter != nil:
		return s.Counter.GetValue()
	case s.Gauge != nil:
		return s.Gauge.GetValue()
	}
	return float64(s.Histogram.GetSampleCount())
}

// series counts a registry's series.
func series(t *testing.T, g prometheus.Gatherer) (n int) {
	t.Helper()
	list, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		n += len(f.GetMetric())
	}
	return n
}

// scrape gets what the handler answers to a scraper that accepts a form.
func scrape(t *testing.T, m *Metrics, accept string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, request)
	if answer.Code != 200 {
		t.Fatalf("a scrape was answered %d: %s", answer.Code, answer.Body)
	}
	return answer
}
