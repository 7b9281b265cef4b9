package metrics

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/core/server"
	"github.com/ticketing-io/ticketing/core/service"
)

// A scrape says how things stand right then.
func TestAScrapeReadsHowThingsStand(t *testing.T) {
	m := New(Config{Clustered: true, Version: "1.2.3", Revision: "abc"})
	ready := errors.New("no leader is known")
	m.Watch(Sources{
		Service: func() service.Stats {
			st := service.Stats{
				Held: 1, Waiters: 2, LongestQueue: 3, OldestWait: 4 * time.Second, Acquires: 5, Releases: 6,
				Limits: service.Limits{Acquires: 7, Releases: 8}, Draining: true,
			}
			st.Gates[service.GateWaiters] = service.GateState{Limit: 9, Use: 10, Closed: true}
			return st
		},
		Server: func() server.Stats {
			return server.Stats{Connections: 11, Limit: 12, Received: 13, Sent: 14, Pending: 15}
		},
		Replica: func() replica.Stats {
			return replica.Stats{
				State: replica.Leader, HasLeader: true, Serving: true, Term: 16, Last: 17, Commit: 18, Applied: 19,
				Members: 20, Voters: 21, HealthyVoters: 22, Quorum: 23, LastContact: 24 * time.Second, LeaderChanges: 25,
				Peers: []replica.PeerLag{{ID: "b", Lag: 26}},
			}
		},
		Ready: func() error { return ready },
		Tracing: func() Tracing {
			return Tracing{ByRatio: 27, BySlowness: 28, ByDoubt: 29, ByLink: 30, DroppedTraces: 31, DroppedSpans: 32, ExportFailures: 33}
		},
		Certificates: func() []Certificate { return []Certificate{{"admin", time.Unix(34, 0)}} },
		ConfigHash:   func() string { return "f00" },
	})
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"ticketing_keys_held", nil, 1},
		{"ticketing_waiters", nil, 2},
		{"ticketing_longest_queue", nil, 3},
		{"ticketing_oldest_waiter_seconds", nil, 4},
		{"ticketing_lane_in_use", []string{"acquire"}, 5},
		{"ticketing_lane_in_use", []string{"release"}, 6},
		{"ticketing_lane_limit", []string{"acquire"}, 7},
		{"ticketing_lane_limit", []string{"release"}, 8},
		{"ticketing_draining", nil, 1},
		{"ticketing_admission_limit", []string{"waiters"}, 9},
		{"ticketing_admission_in_use", []string{"waiters"}, 10},
		{"ticketing_admission_state", []string{"waiters"}, 1},
		{"ticketing_admission_state", []string{"keys"}, 0},
		{"ticketing_admission_close_ratio", nil, 0.90},
		{"ticketing_admission_open_ratio", nil, 0.75},
		{"ticketing_connections_open", nil, 11},
		{"ticketing_connections_limit", nil, 12},
		{"ticketing_received_bytes_total", nil, 13},
		{"ticketing_sent_bytes_total", nil, 14},
		{"ticketing_pending_replies", nil, 15},
		{"ticketing_raft_state", []string{"leader"}, 1},
		{"ticketing_raft_state", []string{"follower"}, 0},
		{"ticketing_raft_has_leader", nil, 1},
		{"ticketing_raft_serving", nil, 1},
		{"ticketing_raft_term", nil, 16},
		{"ticketing_raft_last_index", nil, 17},
		{"ticketing_raft_commit_index", nil, 18},
		{"ticketing_raft_applied_index", nil, 19},
		{"ticketing_raft_members", nil, 20},
		{"ticketing_raft_voters", nil, 21},
		{"ticketing_raft_healthy_voters", nil, 22},
		{"ticketing_raft_quorum", nil, 23},
		{"ticketing_raft_last_contact_seconds", nil, 24},
		{"ticketing_raft_leader_changes_total", nil, 25},
		{"ticketing_raft_peer_lag_entries", []string{"b"}, 26},
		{"ticketing_traces_recorded_total", []string{"ratio"}, 27},
		{"ticketing_traces_recorded_total", []string{"slow"}, 28},
		{"ticketing_traces_recorded_total", []string{"unknown"}, 29},
		{"ticketing_traces_recorded_total", []string{"link"}, 30},
		{"ticketing_telemetry_dropped_total", []string{"traces"}, 31},
		{"ticketing_telemetry_dropped_total", []string{"spans"}, 32},
		{"ticketing_telemetry_export_failures_total", nil, 33},
		{"ticketing_certificate_not_after_seconds", []string{"admin"}, 34},
		{"ticketing_config_info", []string{"f00"}, 1},
		{"ticketing_ready", nil, 0},
	} {
		if got := value(t, m, want.name, want.labels...); got != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
	ready = nil
	if value(t, m, "ticketing_ready") != 1 {
		t.Error("a node that is ready is not told so")
	}
}

// The gates change where the metrics draw their lines.
func TestTheGatesRatiosAreThoseOfTheService(t *testing.T) {
	limits := service.DefaultLimits()
	limits.Waiters = 1000
	s := service.New(local.New(1), service.Config{Limits: limits})
	defer s.Close()
	holder, waiters := s.Open(sink{}, ""), []*service.Session{}
	s.Acquire(holder, service.Acquire{Key: "k", Lease: time.Minute})
	closed := func() bool { return s.Stats().Gates[service.GateWaiters].Closed }
	for !closed() {
		c := s.Open(sink{}, "")
		waiters = append(waiters, c)
		s.Acquire(c, service.Acquire{Key: "k", Wait: time.Minute, Lease: time.Minute})
	}
	if len(waiters) != closeRatio*1000 {
		t.Errorf("closed at %d of 1000", len(waiters))
	}
	for closed() {
		s.Leave(waiters[len(waiters)-1])
		waiters = waiters[:len(waiters)-1]
	}
	if len(waiters) != openRatio*1000-1 {
		t.Errorf("opened at %d of 1000", len(waiters))
	}
}

// Scrapes and the events that they count go on side by side.
func TestScrapesBesideEvents(t *testing.T) {
	m := ofCluster()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 2000 {
			m.Acquire(service.AcquireEvent{Result: service.AcquireGranted, Token: 1, Waited: time.Duration(rand.IntN(1e9))}, trace.TraceID{})
			m.Release(service.ReleaseEvent{Current: true, End: service.End{Held: time.Duration(i)}})
			m.Committed(i, time.Duration(i))
			m.Stored(i, time.Duration(i))
			m.Applied(1, nil, nil, time.Duration(i))
			m.SnapshotStored(time.Duration(i), nil)
			m.SnapshotStored(0, errors.New("no space left on device"))
		}
	})
	wg.Go(func() {
		for range 50 {
			m.Watch(Sources{})
			scrape(t, m, openMetrics)
		}
	})
	wg.Wait()
	for name, want := range map[string]float64{
		"ticketing_tokens_granted_total": 2000, "ticketing_raft_commit_seconds": 2000, "ticketing_raft_batch_commands": 2000, "ticketing_raft_fsync_seconds": 2000,
		"ticketing_raft_apply_seconds": 2000, "ticketing_raft_snapshot_seconds": 2000, "ticketing_raft_snapshot_failures_total": 2000,
	} {
		if got := value(t, m, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
