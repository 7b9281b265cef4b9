package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// perMoment is the unit of events per second.
const perMoment = "cps"

// runtime tells how the processes, their connections and their telemetry are.
func runtime() board {
	return page(runtimeUID, "Ticketing / Runtime",
		"How are the processes, their connections and their telemetry?",
		section{"", process()},
		section{"Is a process short of something?", resources()},
		section{"Do clients connect, and why do they go?", connections()},
		section{"Do traces and scrapes get through?", telemetry()},
	)
}

// process is the row that is read from afar.
func process() []*dashboard.Panel {
	small := func(p panel) panel { p.width, p.height = 4, 4; return p }
	lost := func(counter string) string { return "sum(increase(" + series(counter) + "[1h]))" }
	return []*dashboard.Panel{
		number(small(panel{
			title: "Youngest process", unit: seconds, limits: limits(warning, from(300, good)),
			about:   "How long the node runs that started last. Orange: it started within five minutes.",
			queries: []query{{expr: "min(time() - " + series("process_start_time_seconds") + ")"}},
		})),
		number(small(panel{
			title: "Connections in use", unit: ratio, limits: limits(good, from(0.75, warning), from(0.9, bad)),
			about:   "Of the connections that a node may have, where it is most. At 100 % further clients are closed (max_connections).",
			queries: []query{{expr: part("ticketing_connections_open", "ticketing_connections_limit", "")}},
		})),
		number(small(panel{
			title: "Files in use", unit: ratio, limits: limits(good, from(0.75, warning), from(0.9, bad)),
			about:   "Of the file descriptors that a process may have, where it is most. A connection takes one.",
			queries: []query{{expr: part("process_open_fds", "process_max_fds", "")}},
		})),
		number(small(panel{
			title: "Largest process", unit: memory, limits: limits(quiet),
			about:   "Resident memory of the largest process. A held key takes about 230 bytes, a waiter 220, an idle connection 7,400.",
			queries: []query{{expr: highest("process_resident_memory_bytes", "")}},
		})),
		number(small(panel{
			title: "Telemetry lost, last hour", unit: count, limits: limits(good, from(1, warning)),
			about:   "Spans and traces that were dropped so that telemetry holds nothing up, and batches that the collector did not take.",
			queries: []query{{expr: "round(" + lost("ticketing_telemetry_dropped_total") + " + " + lost("ticketing_telemetry_export_failures_total") + ")"}},
		})),
		number(small(panel{
			title: "Slowest scrape", unit: seconds, limits: limits(good, from(0.25, warning), from(1, bad)),
			about:   "How long Prometheus took to get a node's metrics. A scrape walks no table, so it stays short however many locks are held.",
			queries: []query{{expr: highest("scrape_duration_seconds", "")}},
		})),
	}
}

func resources() []*dashboard.Panel {
	return []*dashboard.Panel{
		graph(panel{
			title: "Processor", unit: ratio, width: 8, height: 7, limits: limits(good),
			about:   "Processor time per second: 100 % is one core.",
			queries: []query{{expr: rate("process_cpu_seconds_total", "instance"), legend: "{{instance}}"}},
		}),
		graph(panel{
			title: "Memory", unit: memory, width: 8, height: 7, limits: limits(good),
			about: "Resident memory, and the part of it that Go's heap has in use.",
			queries: []query{
				{expr: highest("process_resident_memory_bytes", "instance"), legend: "{{instance}} resident"},
				{expr: highest("go_memstats_heap_inuse_bytes", "instance"), legend: "{{instance}} heap"},
			},
		}),
		graph(panel{
			title: "Garbage collection pauses", unit: seconds, width: 8, height: 7, limits: limits(good, from(0.01, warning), from(0.1, bad)),
			about: "The longest of the last pauses of Go's garbage collector. Pauses delay answers and heartbeats.",
			// OpenMetrics writes the quantile 1 as 1.0, Prometheus' own text as 1.
			queries: []query{{expr: highest("go_gc_duration_seconds", "instance", `quantile=~"1|1.0"`), legend: "{{instance}}"}},
		}),
		graph(panel{
			title: "Goroutines and threads", unit: count, width: 12, height: 7, limits: limits(good),
			about: "They rise and fall with the connections. A line that only rises: something is not ended.",
			queries: []query{
				{expr: highest("go_goroutines", "instance"), legend: "{{instance}} goroutines"},
				{expr: highest("go_threads", "instance"), legend: "{{instance}} threads"},
			},
		}),
		graph(panel{
			title: "Open files", unit: count, width: 12, height: 7, limits: limits(good),
			about:   "File descriptors in use. The part of the limit is in the figure above.",
			queries: []query{{expr: highest("process_open_fds", "instance"), legend: "{{instance}}"}},
		}),
	}
}

func connections() []*dashboard.Panel {
	const closed = "ticketing_connections_closed_total"
	return []*dashboard.Panel{
		graph(panel{
			title: "Open connections", unit: count, width: 8, height: 7, limits: limits(good),
			about: "Connections of clients, those in their handshake included, below the lowest limit of any node.",
			queries: []query{
				{expr: highest("ticketing_connections_open", "instance"), legend: "{{instance}}"},
				{expr: aggregate("min", "", series("ticketing_connections_limit")), legend: "limit"},
			},
		}, ruled("limit"), colored(map[string]string{"limit": bad})),
		graph(panel{
			title: "Accepted connections", unit: perMoment, width: 8, height: 7, limits: limits(good),
			about: "New connections per second, and accepts that failed, for want of file descriptors for example. Many: clients that dial for every lock.",
			queries: []query{
				{expr: rate("ticketing_connections_accepted_total", "instance"), legend: "{{instance}}"},
				{expr: rate("ticketing_accept_failures_total", ""), legend: "failed"},
			},
		}, colored(map[string]string{"failed": bad})),
		graph(panel{
			title: "Closed connections by reason", unit: perMoment, width: 8, height: 7, limits: limits(good),
			about:   "Why connections ended; reasons that did not occur are left out. slow and write_failed: the network; limit: max_connections; not_active and moved: the leader changed.",
			queries: []query{{expr: rate(closed, "reason") + " > 0 or " + rate(closed, "reason", `reason="client_closed"`), legend: "{{reason}}"}},
		}, stacked),
		graph(panel{
			title: "Failed handshakes", unit: perMoment, width: 8, height: 7, limits: limits(good),
			about:   "auth_failed: a wrong token; tls_failed: a certificate; handshake_timeout and displaced: strangers that say nothing.",
			queries: []query{{expr: rate("ticketing_handshake_failures_total", "reason"), legend: "{{reason}}"}},
		}, stacked),
		graph(panel{
			title: "Traffic", unit: "Bps", width: 8, height: 7, limits: limits(good),
			about: "Bytes from and to clients, handshakes and TLS included.",
			queries: []query{
				{expr: rate("ticketing_received_bytes_total", ""), legend: "received"},
				{expr: rate("ticketing_sent_bytes_total", ""), legend: "sent"},
			},
		}),
		graph(panel{
			title: "Answers not sent yet", unit: count, width: 8, height: 7, limits: limits(good, from(1000, warning), from(10000, bad)),
			about:   "Answers that are decided and wait for their connection. Stays up: clients that do not read.",
			queries: []query{{expr: highest("ticketing_pending_replies", "instance"), legend: "{{instance}}"}},
		}),
	}
}

func telemetry() []*dashboard.Panel {
	return []*dashboard.Panel{
		graph(panel{
			title: "Recorded traces", unit: perMoment, width: 8, height: 7, limits: limits(good),
			about:   "Traces by why they were recorded. slow and unknown are, whatever trace.sample says; link: another trace leads there.",
			queries: []query{{expr: rate("ticketing_traces_recorded_total", "why"), legend: "{{why}}"}},
		}, stacked),
		graph(panel{
			title: "Lost telemetry", unit: perMoment, width: 8, height: 7, limits: limits(good),
			about: "What was dropped so that nothing waits for telemetry, and batches that the collector did not take: it is slow or gone, or trace.sample is too large.",
			queries: []query{
				{expr: rate("ticketing_telemetry_dropped_total", "signal"), legend: "dropped {{signal}}"},
				{expr: rate("ticketing_telemetry_export_failures_total", ""), legend: "failed batches"},
			},
		}),
		graph(panel{
			title: "Failed scrapes", unit: count, width: 8, height: 7, limits: limits(good, from(1, warning)),
			about: "Scrapes that a node could not answer in full: see its log.",
			queries: []query{
				{expr: increase("promhttp_metric_handler_errors_total", "instance"), legend: "{{instance}}"},
			},
		}),
	}
}
