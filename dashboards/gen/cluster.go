package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// day in seconds.
const day = 24 * 60 * 60

// cluster tells who leads, whether the others follow, and what the disk costs.
func cluster() board {
	return page(clusterUID, "Ticketing / Cluster",
		"Who leads, do the others follow, and what do the disk and the network cost? Empty for a single server.",
		section{"", standing()},
		section{"Who leads, and does it last?", leadership()},
		section{"What does an entry cost?", entries()},
		section{"Do the others follow?", followers()},
		section{"Are snapshots written, and what does each node run?", upkeep()},
	)
}

// standing is the row that is read from afar.
func standing() []*dashboard.Panel {
	small := func(p panel) panel { p.width, p.height = 4, 4; return p }
	return []*dashboard.Panel{
		leader(small(panel{})),
		named(number(small(panel{
			title: "Losses it survives", unit: count, limits: limits(bad, from(0, warning), from(1, good)),
			about:   "How many more voters may fail before nothing is granted any more: the healthy ones, less the quorum. A healthy cluster of three shows 1. No data for a cluster of one.",
			queries: []query{{expr: fmt.Sprintf("clamp_min(%s - %s, -1) unless %s == 1", voters("healthy_voters"), voters("quorum"), voters("voters"))}},
		})), state{-1, "it stands still", bad}, state{0, "none", warning}),
		number(small(panel{
			title: "Elections in the last hour", unit: count, limits: limits(good, from(3, warning), from(10, bad)),
			about:   "How often a leader was elected, as the node says that saw most of it. A planned restart of all nodes makes a few.",
			queries: []query{{expr: "round(max(increase(" + series("ticketing_raft_leader_changes_total") + "[1h])))"}},
		})),
		number(small(panel{
			title: "Furthest behind", unit: count, limits: limits(good, from(1000, warning), from(8192, bad)),
			about:   "Entries that the slowest member is behind. From 8,192 on it may need a snapshot instead of the log.",
			queries: []query{{expr: aggregate("max", "", whole("ticketing_raft_peer_lag_entries"))}},
		})),
		number(small(panel{
			title: "Versions", unit: count, limits: limits(good, from(2, warning)),
			about:   "How many versions of the program run. More than one only while the cluster is upgraded.",
			queries: []query{{expr: "count(count by (version, revision) (" + series("ticketing_build_info") + "))"}},
		})),
		number(small(panel{
			title: "Certificates end in", unit: seconds, limits: limits(bad, from(2*day, warning), from(14*day, good)),
			about:   "Until the first certificate of any node is no longer valid. Renew it, and reload with SIGHUP.",
			empty:   "none",
			queries: []query{{expr: "min(" + series("ticketing_certificate_not_after_seconds") + ") - time()"}},
		})),
	}
}

// voters is a count of voters, as the leader sees it.
func voters(what string) string { return aggregate("max", "", whole("ticketing_raft_"+what)) }

func leadership() []*dashboard.Panel {
	var roles []string
	for value, name := range []string{"follower", "candidate", "leader", "stopped"} {
		roles = append(roles, fmt.Sprintf("%d * %s", value, highest("ticketing_raft_state", "instance", `state="`+name+`"`)))
	}
	return []*dashboard.Panel{
		timeline(panel{
			title: "Roles", unit: count, width: 12, height: 7, limits: limits(quiet, from(1, warning), from(2, good), from(3, bad)),
			about:   "What each node is in raft. Stopped: its disk failed, or it was removed; see its log.",
			queries: []query{{expr: strings.Join(roles, " + "), legend: "{{instance}}"}},
		}, state{0, "follower", quiet}, state{1, "candidate", warning}, state{2, "leader", good}, state{3, "stopped", bad}),
		graph(panel{
			title: "Voters", unit: count, width: 6, height: 7, limits: limits(good),
			about: "Voters that answer and are close behind, as the leader sees them. At the quorum, one more failure stops the cluster.",
			queries: []query{
				{expr: voters("healthy_voters"), legend: "healthy"},
				{expr: voters("voters"), legend: "all"},
				{expr: voters("quorum"), legend: "quorum"},
			},
		}, ruled("all", "quorum"), colored(map[string]string{"healthy": good, "all": grey, "quorum": bad})),
		graph(panel{
			title: "Elections", unit: count, width: 6, height: 7, limits: limits(good),
			about:   "How often each node came to know a leader. All nodes at once: the leader went. One alone: it was cut off.",
			queries: []query{{expr: increase("ticketing_raft_leader_changes_total", "instance"), legend: "{{instance}}"}},
		}, bars),
		graph(panel{
			title: "Leader's last word", unit: seconds, width: 12, height: 7, limits: limits(good, from(0.25, warning), from(0.5, bad)),
			about:   "How long ago a follower heard from the leader. From cluster.heartbeat on (500 ms) it calls an election: see the network, and the leader's processor and disk.",
			queries: []query{{expr: highest("ticketing_raft_last_contact_seconds", "instance"), legend: "{{instance}}"}},
		}),
		graph(panel{
			title: "Term", unit: count, width: 12, height: 7, limits: limits(good),
			about:   "Raft's term as each node knows it. Every election raises it. Nodes that differ for long are cut off from each other.",
			queries: []query{{expr: highest("ticketing_raft_term", "instance"), legend: "{{instance}}"}},
		}),
	}
}

func entries() []*dashboard.Panel {
	const commit, batch = "ticketing_raft_commit_seconds", "ticketing_raft_batch_commands"
	return []*dashboard.Panel{
		graph(panel{
			title: "Commit", unit: seconds, width: 8, height: 8, limits: limits(good, from(0.1, warning), from(1, bad)),
			about: "From an entry being proposed to its being committed and applied: each grant costs one. What it is above fsync is the network and the other voters.",
			queries: []query{
				{expr: quantile(0.5, commit, ""), legend: "p50"},
				{expr: quantile(0.99, commit, ""), legend: "p99"},
			},
		}, powers),
		graph(panel{
			title: "Fsync, p99", unit: seconds, width: 8, height: 8, limits: limits(good, from(0.01, warning), from(0.1, bad)),
			about:   "How long the log took to write a batch of entries and sync it to disk. The leader's and the fastest follower's bound the throughput.",
			queries: []query{{expr: quantile(0.99, "ticketing_raft_fsync_seconds", "instance"), legend: "{{instance}}"}},
		}, powers),
		graph(panel{
			title: "Apply, p99", unit: seconds, width: 8, height: 8, limits: limits(good, from(0.01, warning), from(0.1, bad)),
			about:   "How long the lock table took to apply an entry. Milliseconds: the processor is short.",
			queries: []query{{expr: quantile(0.99, "ticketing_raft_apply_seconds", "instance"), legend: "{{instance}}"}},
		}, powers),
		graph(panel{
			title: "Commands in an entry", unit: count, width: 12, height: 7, limits: limits(good),
			about: "How many grants, releases and lease ends share one entry, and so one write to disk. It grows with the load: that is how the cluster keeps up.",
			queries: []query{
				{expr: rate(batch+"_sum", "") + " / " + rate(batch+"_count", ""), legend: "mean"},
				{expr: quantile(0.99, batch, ""), legend: "p99"},
			},
		}),
		graph(panel{
			title: "Entries and commands", unit: "cps", width: 12, height: 7, limits: limits(good),
			about: "What the leader commits in a second. At rest with locks held it is one entry a second.",
			queries: []query{
				{expr: rate(batch+"_count", ""), legend: "entries"},
				{expr: rate(batch+"_sum", ""), legend: "commands"},
			},
		}),
	}
}

func followers() []*dashboard.Panel {
	ahead := func(index, of string) string {
		return aggregate("max", "instance", series("ticketing_raft_"+index+"_index")+" - "+series("ticketing_raft_"+of+"_index"))
	}
	return []*dashboard.Panel{
		graph(panel{
			title: "Members behind", unit: count, width: 12, height: 7, limits: limits(good, from(1000, warning), from(8192, bad)),
			about:   "Entries that each other member is behind the leader, by what it said last. It is asked once a second, so a second's entries are usual. Grows: it is down, or its disk is slow. A member that was down when this leader began is not shown: see Voters.",
			queries: []query{{expr: aggregate("max", "peer", whole("ticketing_raft_peer_lag_entries")), legend: "{{peer}}"}},
		}),
		graph(panel{
			title: "Committed and not applied", unit: count, width: 6, height: 7, limits: limits(good, from(100, warning), from(1000, bad)),
			about:   "Entries that a node knows as committed and has not given to its lock table. For long: it is overloaded.",
			queries: []query{{expr: ahead("commit", "applied"), legend: "{{instance}}"}},
		}),
		graph(panel{
			title: "Stored and not committed", unit: count, width: 6, height: 7, limits: limits(good, from(100, warning), from(1000, bad)),
			about:   "Entries in a node's log that it does not know as committed. Grows on the leader: no majority stores them.",
			queries: []query{{expr: ahead("last", "commit"), legend: "{{instance}}"}},
		}),
	}
}

func upkeep() []*dashboard.Panel {
	const snapshot = "ticketing_raft_snapshot_seconds"
	return []*dashboard.Panel{
		graph(panel{
			title: "Snapshots, mean of the last hour", unit: seconds, width: 6, height: 7, limits: limits(good, from(5, warning), from(30, bad)),
			about: "How long a snapshot took to be on disk. Grows with the locks held, and with a slow disk. A node without a snapshot in that hour is left out.",
			queries: []query{{
				expr:   aggregate("max", "instance", "increase("+series(snapshot+"_sum")+"[1h]) / increase("+series(snapshot+"_count")+"[1h])"),
				legend: "{{instance}}",
			}},
		}),
		graph(panel{
			title: "Snapshots", unit: count, width: 6, height: 7, limits: limits(good),
			about: "Snapshots that were written, and that the disk did not take: it is full or broken, and the log grows meanwhile.",
			queries: []query{
				{expr: increase(snapshot+"_count", ""), legend: "written"},
				{expr: increase("ticketing_raft_snapshot_failures_total", ""), legend: "failed"},
			},
		}, bars, colored(map[string]string{"written": good, "failed": bad})),
		rows(panel{
			title: "Programs and configurations", unit: "none", width: 12, height: 7, limits: limits(good),
			about:   "What each node runs. Differing versions: an upgrade is under way. Differing hashes are usual where nodes have their own paths; one that did not change after a reload is not.",
			queries: []query{{expr: series("ticketing_build_info") + " * on (job, instance) group_left (hash) " + series("ticketing_config_info")}},
		}, "instance", "version", "revision", "go", "hash"),
	}
}
