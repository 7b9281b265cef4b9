package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// contention answers why somebody waits, and how near the limits are.
func contention() board {
	return page(contentionUID, "Ticketing / Contention and admission",
		"Why does somebody wait or get turned away, and how near are the limits?",
		section{"Is anybody turned away, and how near are the limits?", admission()},
		section{"Who waits, how long, and behind how many?", queues()},
		section{"How long are locks held, and how do they end?", holders()},
	)
}

// admission shows each gate against the lines at which it closes and opens.
func admission() []*dashboard.Panel {
	return []*dashboard.Panel{
		timeline(panel{
			title: "Gates", unit: count, width: 24, height: 5, limits: limits(good, from(1, bad)),
			about:   "When a gate of admission was closed on any node. While it is, the acquires that it guards against are answered busy; releases always pass.",
			queries: []query{{expr: highest("ticketing_admission_state", "gate"), legend: "{{gate}}"}},
		}, state{0, "open", good}, state{1, "closed", bad}),
		gate("acquires", "Acquires in flight. Near the line: decisions take long; see commit and fsync in the dashboard Cluster."),
		gate("keys", "Keys that are held or waited for. Near the line: keys of too many names, or leases that are too long."),
		gate("waiters", "Acquires that wait. Near the line: holders keep their locks too long, or max_total_waiters is too low."),
		graph(panel{
			title: "Refusals", unit: perSecond, width: 12, height: 8, limits: limits(good),
			about:   "Acquires that were answered busy, by the gate and why. key_limit: one key has max_waiters. quiet: nothing is granted for a while after a restore. draining: the node stops.",
			queries: []query{{expr: rate("ticketing_admission_refusals_total", "gate, reason"), legend: "{{gate}}: {{reason}}"}},
		}, stacked),
		graph(panel{
			title: "Gates that close and open", unit: count, width: 6, height: 8, limits: limits(good),
			about:   "How often a gate changed. Often: the load is about as much as the limit.",
			queries: []query{{expr: increase("ticketing_admission_transitions_total", "gate, to"), legend: "{{gate}} {{to}}"}},
		}, bars),
		graph(panel{
			title: "Lanes in use", unit: ratio, width: 6, height: 8, limits: limits(good, from(0.75, warning), from(0.9, bad)),
			about:   "Requests in flight, of those that may be. Full: the log on disk is too slow for the load. Releases that find no room wait, and are never refused.",
			queries: []query{{expr: part("ticketing_lane_in_use", "ticketing_lane_limit", "lane"), legend: "{{lane}}"}},
		}, upToOne),
	}
}

func gate(name, about string) *dashboard.Panel {
	return graph(panel{
		title: "Gate: " + name, unit: ratio, width: 8, height: 7, about: about, limits: limits(good),
		queries: []query{
			{expr: part("ticketing_admission_in_use", "ticketing_admission_limit", "instance", `gate="`+name+`"`), legend: "{{instance}}"},
			{expr: highest("ticketing_admission_close_ratio", ""), legend: "closes"},
			{expr: highest("ticketing_admission_open_ratio", ""), legend: "opens again"},
		},
	}, upToOne, ruled("closes", "opens again"), colored(map[string]string{"closes": bad, "opens again": warning}))
}

func queues() []*dashboard.Panel {
	const wait, depth = "ticketing_acquire_wait_seconds", "ticketing_acquire_queue_depth"
	return []*dashboard.Panel{
		graph(panel{
			title: "Waiters", unit: count, width: 8, height: 7, limits: limits(good),
			about: "Acquires that wait, and how many of them wait for the same key. When both are close together, one key is contended.",
			queries: []query{
				{expr: total("ticketing_waiters"), legend: "all"},
				{expr: highest("ticketing_longest_queue", ""), legend: "longest queue"},
			},
		}),
		graph(panel{
			title: "Oldest waiter", unit: seconds, width: 8, height: 7, limits: limits(good, from(60, warning), from(120, bad)),
			about:   "How long the acquire has waited that waits longest. A straight rise: its key's holder does not release it. No wait is longer than 255 s.",
			queries: []query{{expr: highest("ticketing_oldest_waiter_seconds", "instance"), legend: "{{instance}}"}},
		}),
		graph(panel{
			title: "Queue before an acquire", unit: count, width: 8, height: 7, limits: limits(good, from(100, warning), from(1000, bad)),
			about: "How many acquires of its key were before an acquire when it came. Refused ones are left out.",
			queries: []query{
				{expr: quantile(0.5, depth, ""), legend: "p50"},
				{expr: quantile(0.99, depth, ""), legend: "p99"},
			},
		}),
		graph(panel{
			title: "Wait by outcome", unit: seconds, width: 12, height: 8, limits: limits(good, from(10, warning), from(60, bad)),
			about: "How long acquires waited that were granted, that gave up, and whose outcome is unknown. A dot is one that was traced: its link leads to the trace.",
			queries: []query{
				{expr: quantile(0.5, wait, "", `outcome="granted"`), legend: "granted, p50"},
				{expr: quantile(0.99, wait, "outcome"), legend: "{{outcome}}, p99", exemplars: true},
			},
		}, powers, colored(map[string]string{"granted, p50": quiet, "granted, p99": good, "timeout, p99": "yellow", "unknown, p99": "dark-red"})),
		heat(panel{
			title: "Waits until granted", unit: seconds, width: 12, height: 8, limits: limits(good),
			about:   "All waits, darker where there are more of them. Two bands: keys that are contended beside keys that are not.",
			queries: []query{{expr: increase(wait+"_bucket", "le", `outcome="granted"`), legend: "{{le}}", exemplars: true}},
		}),
	}
}

func holders() []*dashboard.Panel {
	const hold, lag = "ticketing_hold_seconds", "ticketing_expiry_lag_seconds"
	return []*dashboard.Panel{
		graph(panel{
			title: "Hold time", unit: seconds, width: 12, height: 8, limits: limits(good, from(200, warning), from(250, bad)),
			about: "How long locks were held, by how they ended. Others wait as long: shorter work under the lock is the first thing to try. No lease is longer than 250 s.",
			queries: []query{
				{expr: quantile(0.5, hold, "end"), legend: "{{end}}, p50"},
				{expr: quantile(0.99, hold, "end"), legend: "{{end}}, p99"},
			},
		}, powers),
		heat(panel{
			title: "Hold times of released locks", unit: seconds, width: 12, height: 8, limits: limits(good),
			about:   "All holds that ended with a release, darker where there are more of them.",
			queries: []query{{expr: increase(hold+"_bucket", "le", `end="released"`), legend: "{{le}}"}},
		}),
		graph(panel{
			title: "Lease ends that were noticed late", unit: seconds, width: 12, height: 7, limits: limits(good, from(0.25, warning), from(1, bad)),
			about: "How long after its lease's end an expired grant left the table: so much longer does the next one wait. More than a second: the node is overloaded, or entries take long to commit.",
			queries: []query{
				{expr: quantile(0.5, lag, ""), legend: "p50"},
				{expr: quantile(0.99, lag, ""), legend: "p99"},
			},
		}, powers),
		graph(panel{
			title: "Grants that did not end well", unit: perSecond, width: 12, height: 7, limits: limits(good),
			about: "Expired: the holder died or was too slow. Too late: a release whose token was no longer the current one; only fencing kept two holders apart. Forced: an operator ended it.",
			queries: []query{
				{expr: rate("ticketing_expiries_total", ""), legend: "expired"},
				{expr: rate("ticketing_releases_total", "", `result="not_current"`), legend: "released too late"},
				{expr: rate("ticketing_forced_releases_total", ""), legend: "forced"},
			},
		}, colored(map[string]string{"expired": warning, "released too late": bad, "forced": "purple"})),
	}
}
