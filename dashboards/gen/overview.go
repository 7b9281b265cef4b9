package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// overview is for the wall: is it healthy, is it open, how long does one wait.
func overview() board {
	return page(overviewUID, "Ticketing / Overview",
		"Is the lock server healthy, does it let everybody in, and how long does one wait? Red is for now, orange for today.",
		section{"", now()},
		section{"Which node, which alert?", nodes()},
		section{"Do acquires get their locks, and how do grants end?", []*dashboard.Panel{acquires(), waits(), ends()}},
		section{"What is held, and is there room?", locks()},
	)
}

// now is the row that is read from afar.
func now() []*dashboard.Panel {
	small := func(p panel) panel { p.width, p.height = 3, 4; return p }
	return []*dashboard.Panel{
		named(number(small(panel{
			title: "Nodes not ready", unit: count, more: clusterUID, limits: limits(good, from(1, bad)),
			about:   "Nodes that can't be scraped, or say that they are not ready for clients.",
			queries: []query{{expr: "count(" + series("up") + ") - (" + total("ticketing_ready") + " or vector(0))"}},
		})), state{0, "none", good}),
		leader(small(panel{more: clusterUID})),
		named(number(small(panel{
			title: "Admission", unit: count, more: contentionUID, limits: limits(good, from(1, bad)),
			about:   "Whether any gate of admission is closed. Closed: acquires are answered busy until use has fallen below three quarters of the limit.",
			queries: []query{{expr: highest("ticketing_admission_state", "")}},
		})), state{0, "open", good}, state{1, "closed", bad}),
		number(small(panel{
			title: "Refused", unit: ratio, more: contentionUID, limits: limits(good, from(0.001, warning), from(0.05, bad)),
			about: "The part of all acquires that were answered busy. What a node refuses while it stops is left out.",
			queries: []query{{expr: rate("ticketing_admission_refusals_total", "", `reason!="draining"`) +
				" / clamp_min(" + rate("ticketing_acquires_total", "") + ", 1e-9)"}},
		})),
		number(small(panel{
			title: "Grants", unit: perSecond, more: contentionUID, limits: limits(quiet),
			about:   "Locks granted per second: the throughput.",
			queries: []query{{expr: rate("ticketing_tokens_granted_total", "")}},
		})),
		number(small(panel{
			title: "Wait, p99", unit: seconds, more: contentionUID, limits: limits(good, from(10, warning), from(60, bad)),
			about:   "Of a hundred acquires that are granted, 99 wait no longer than this. What is long depends on how long your jobs hold their locks.",
			empty:   "no grants",
			queries: []query{{expr: quantile(0.99, "ticketing_acquire_wait_seconds", "", `outcome="granted"`) + " >= 0"}}, // NaN is not
		})),
		number(small(panel{
			title: "Waiters", unit: count, more: contentionUID, limits: limits(quiet),
			about:   "Acquires that wait in a queue now.",
			queries: []query{{expr: total("ticketing_waiters")}},
		})),
		named(number(small(panel{
			title: "Worst alert", unit: count, limits: limits(good, from(1, warning), from(2, bad)),
			about:   "The worst severity of the alerts of this cluster that fire now; those that only inform are left out. The list is below.",
			queries: []query{{expr: "2 * " + severest("critical") + " or " + severest("warning") + " or vector(0)"}},
		})), state{0, "none", good}, state{1, "warning", warning}, state{2, "critical", bad}),
	}
}

// severest is 1 while an alert of a severity fires, and else nothing.
func severest(severity string) string {
	return aggregate("max", "", whole("ALERTS", `alertstate="firing"`, `severity="`+severity+`"`))
}

// leader tells whether there is one: of a cluster, whichever of its nodes are chosen.
func leader(p panel) *dashboard.Panel {
	p.title, p.unit, p.limits = "Leader", count, limits(bad, from(1, good), from(2, bad))
	p.about = "How many nodes lead and serve. Exactly one, but for about a second when leadership changes hands."
	serving, single := aggregate("sum", "", whole("ticketing_raft_serving")), "0 * "+aggregate("sum", "", whole("ticketing_ready"))+" - 1"
	p.queries = []query{{expr: serving + " or " + single}}
	return named(number(p), state{-1, "single server", quiet}, state{0, "none", bad}, state{1, "one", good})
}

func acquires() *dashboard.Panel {
	return graph(panel{
		title: "Acquires by outcome", unit: perSecond, width: 8, height: 8, more: contentionUID, limits: limits(good),
		about:   "How acquires ended. Timeouts are for clients to judge; busy means a limit, unknown a fault of the cluster: the lock may be held until its lease ends.",
		queries: []query{{expr: rate("ticketing_acquires_total", "outcome"), legend: "{{outcome}}"}},
	}, stacked, colored(map[string]string{
		"granted": good, "timeout": "yellow", "busy": bad, "unknown": "dark-red", "exhausted": "dark-orange", "moved": quiet, "gone": grey,
	}))
}

func waits() *dashboard.Panel {
	const wait, granted = "ticketing_acquire_wait_seconds", `outcome="granted"`
	return graph(panel{
		title: "Wait until granted", unit: seconds, width: 8, height: 8, more: contentionUID, limits: limits(good, from(10, warning), from(60, bad)),
		about: "From an acquire being read to its grant. A dot is one acquire that was traced: its link leads to the trace, which says what it waited for.",
		queries: []query{
			{expr: quantile(0.5, wait, "", granted), legend: "p50"},
			{expr: quantile(0.99, wait, "", granted), legend: "p99", exemplars: true},
		},
	}, powers, colored(map[string]string{"p50": quiet, "p99": "purple"}))
}

func ends() *dashboard.Panel {
	return graph(panel{
		title: "How grants end", unit: perSecond, width: 8, height: 8, more: contentionUID, limits: limits(good),
		about: "Released: all is well. Expired: the holder died or was too slow. Too late: a release whose token was no longer the current one.",
		queries: []query{
			{expr: rate("ticketing_releases_total", "", `result="released"`), legend: "released"},
			{expr: rate("ticketing_expiries_total", ""), legend: "expired"},
			{expr: rate("ticketing_releases_total", "", `result="not_current"`), legend: "released too late"},
		},
	}, colored(map[string]string{"released": good, "expired": warning, "released too late": bad}))
}

func locks() []*dashboard.Panel {
	return []*dashboard.Panel{
		graph(panel{
			title: "Waiters over time", unit: count, width: 8, height: 7, more: contentionUID, limits: limits(good),
			about: "Acquires that wait, and how many of them wait for the same key. When both are close together, one key is contended.",
			queries: []query{
				{expr: total("ticketing_waiters"), legend: "all"},
				{expr: highest("ticketing_longest_queue", ""), legend: "longest queue"},
			},
		}),
		graph(panel{
			title: "Keys held", unit: count, width: 8, height: 7, more: contentionUID, limits: limits(good),
			about:   "Keys that have a grant. A line that only rises: holders do not release, and their leases end the locks.",
			queries: []query{{expr: highest("ticketing_keys_held", ""), legend: "held"}},
		}),
		graph(panel{
			title: "Use of the limits", unit: ratio, width: 8, height: 7, more: contentionUID, limits: limits(good, from(0.75, warning), from(0.9, bad)),
			about:   "How much of each gate's limit is in use. A gate closes at 90 % and opens again below 75 %.",
			queries: []query{{expr: part("ticketing_admission_in_use", "ticketing_admission_limit", "gate"), legend: "{{gate}}"}},
		}, upToOne),
	}
}

func nodes() []*dashboard.Panel {
	return []*dashboard.Panel{
		timeline(panel{
			title: "Ready", unit: count, width: 12, height: 6, more: clusterUID, limits: limits(bad, from(1, good)),
			about:   "When each node was ready for clients. A gap: it could not be scraped.",
			queries: []query{{expr: highest("ticketing_ready", "instance"), legend: "{{instance}}"}},
		}, state{0, "not ready", bad}, state{1, "ready", good}),
		rows(panel{
			title: "Alerts that fire", unit: "none", width: 12, height: 6, limits: limits(good), empty: "none",
			about:   "All alerts of this cluster that fire now, whichever nodes are chosen. RUNBOOK.md has a section for each: what it means, what to look at, what to do.",
			queries: []query{{expr: whole("ALERTS", `alertstate="firing"`)}},
		}, "severity", "alertname", "instance", "gate", "peer"),
	}
}
