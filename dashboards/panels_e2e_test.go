//go:build e2e

package dashboards

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Prometheus, as it is provisioned, scrapes three nodes under load: then every query of
// every panel has data, every rule evaluates, the variables find the nodes, waits have
// exemplars that lead to a trace, and the alerts tell of the load and of nothing else.
func TestARealPrometheusHasDataForEveryPanel(t *testing.T) {
	needPrometheus(t)
	c := startCluster(t)
	p := startPrometheus(t, c.admin)
	c.load()
	p.awaitData(panels(t))
	eventually(t, func() string { return p.unhealthyRules(len(alerts(t))) })
	eventually(t, func() string {
		if nodes := p.labels("instance", `ticketing_build_info{job="ticketing"}`); len(nodes) != len(c.admin) {
			return fmt.Sprintf("the variable instance offers %v", nodes)
		}
		return ""
	})
	eventually(t, func() string {
		if !p.hasExemplars(`ticketing_acquire_wait_seconds_bucket{outcome="granted"}`) {
			return "no wait has an exemplar with a trace"
		}
		return ""
	})
	p.awaitAlerts("TicketingRefusals")
}

// A single server fills all dashboards but that of the cluster, which its metrics are not of.
func TestASingleServerFillsAllDashboardsButTheClusters(t *testing.T) {
	needPrometheus(t)
	c := startSingle(t)
	p := startPrometheus(t, c.admin)
	eventually(t, func() string {
		if said := p.value(panelNamed(t, "Overview", "Leader")); said != "-1" {
			return "the leader of a single server is " + said
		}
		return ""
	})
	c.load()
	ofNodes := slices.DeleteFunc(panels(t), func(one panel) bool { return one.page == "Cluster" })
	p.awaitData(ofNodes)
	eventually(t, func() string { return p.unhealthyRules(len(alerts(t))) })
	p.awaitAlerts("TicketingRefusals")
}

// The node that led is killed: whoever is called finds on the wall which one is gone and that
// the others go on, and is not told that there is no leader.
func TestALeaderThatDiesIsToldOf(t *testing.T) {
	needPrometheus(t)
	c := startCluster(t)
	p := startPrometheus(t, c.admin)
	figures := func(want map[string]string) {
		t.Helper()
		eventually(t, func() string {
			for panel, figure := range want {
				page, title, _ := strings.Cut(panel, ": ")
				if said := p.value(panelNamed(t, page, title)); said != figure {
					return fmt.Sprintf("%s says %s, want %s", panel, said, figure)
				}
			}
			return ""
		})
	}
	figures(map[string]string{"Overview: Nodes not ready": "0", "Overview: Leader": "1", "Cluster: Losses it survives": "1"})
	c.kill(p.labelOf("instance", "ticketing_raft_serving == 1"))
	figures(map[string]string{"Overview: Nodes not ready": "1", "Overview: Leader": "1", "Cluster: Losses it survives": "0", "Overview: Worst alert": "2"})
	p.awaitAlerts("TicketingQuorumAtRisk", "TicketingScrapeDown")
}

// panelNamed returns a panel's first query.
func panelNamed(t *testing.T, page, title string) (expr string) {
	t.Helper()
	for _, p := range panels(t) {
		if p.page == page && p.title == title {
			return ask(p.exprs[0], rateWindow)
		}
	}
	t.Fatalf("no panel %s of %s", title, page)
	return ""
}
