package config

import (
	"fmt"
	"os"
	"time"
)

const membersKey = "cluster.members"

// cluster checks section [cluster].
func (k *checker) cluster() {
	if !k.c.Clustered() {
		return
	}
	one := k.c.Cluster
	switch {
	case one.NodeID == "":
		k.fault("cluster.node_id", "not set; give this node an id that no other node ever has")
	case !validName(one.NodeID):
		k.fault("cluster.node_id", "%s", nameRule(quote(one.NodeID)))
	}
	if one.DataDir == "" {
		k.fault("cluster.data_dir", "not set; name a folder for the node's log and snapshots, on a disk that stays")
	} else if info, err := os.Stat(one.DataDir); err == nil && !info.IsDir() {
		k.fault("cluster.data_dir", "%s is a file; name a folder", quote(one.DataDir))
	}
	k.clusterTLS()
	k.raft()
	k.members()
}

// raft checks raft's timers and when it writes snapshots.
func (k *checker) raft() {
	one := k.c.Cluster
	k.inTime("cluster.heartbeat", one.Heartbeat, MinRaftTimer, MaxRaftTimer)
	k.inTime("cluster.election", one.Election, MinRaftTimer, MaxRaftTimer)
	k.inTime("cluster.leader_lease", one.LeaderLease, MinLeaderLease, MaxRaftTimer)
	if one.Election < one.Heartbeat {
		k.fault(k.later("cluster.election", "cluster.heartbeat"), "an election of %v is shorter than a heartbeat of %v; make them the same", one.Election, one.Heartbeat)
	}
	if one.LeaderLease > one.Heartbeat {
		k.fault(k.later("cluster.leader_lease", "cluster.heartbeat"), "a leader's lease of %v is longer than a heartbeat of %v, so there could be two leaders; set it to half of the heartbeat", one.LeaderLease, one.Heartbeat)
	}
	k.inTime("cluster.snapshot_interval", one.SnapshotInterval, MinSnapshotInterval, MaxSnapshotInterval)
	k.inRange("cluster.snapshot_threshold", one.SnapshotThreshold, MinSnapshotThreshold, MaxSnapshotThreshold)
}

func (k *checker) inTime(key string, d, low, high time.Duration) {
	if d < low || d > high {
		k.fault(key, "%v is out of range; set %v to %v", d, low, high)
	}
}

// members checks the list of members, and what this node tells clients of itself.
func (k *checker) members() {
	members := k.c.Cluster.Members
	if len(members) > MaxMembers {
		k.fault(membersKey, "%d members; keep at most %d", len(members), MaxMembers)
		return
	}
	taken := map[string]int{} // what must differ between members: by kind and value, who has it
	var self *Member
	for i, m := range members {
		path := fmt.Sprintf("%s.%d", membersKey, i)
		if m.ID == k.c.Cluster.NodeID {
			self = &members[i]
		}
		for _, problem := range m.problems() {
			k.fault(path, "entry %d: %s", i+1, problem)
		}
		for _, u := range []struct{ name, value string }{{"id", m.ID}, {"raft", m.Raft}, {"client", m.Client}, {"admin", m.Admin}} {
			if u.value == "" {
				continue
			}
			if first, ok := taken[u.name+" "+u.value]; ok {
				k.fault(path, "entry %d has the same %s as entry %d, %s; no two members share one", i+1, u.name, first, quote(u.value))
			}
			taken[u.name+" "+u.value] = i + 1
		}
	}
	if n := len(members); n > 0 && n%2 == 0 {
		k.warn(membersKey, "%d members go on without %d of them, as %d would; an odd number is better", n, n/2-1, n-1)
	}
	switch {
	case k.unread[membersKey] || k.c.Cluster.NodeID == "":
	case self == nil && k.c.Advertise == "":
		k.fault(membersKey, "this node, %s, is in no entry, so clients can't be told its address; add it, or set advertise", quote(k.c.Cluster.NodeID))
	case self != nil && k.c.Advertise != "" && k.c.Advertise != self.Client:
		k.fault("advertise", "%s is not %s, which cluster.members gives for this node; remove advertise, or make them the same", quote(k.c.Advertise), quote(self.Client))
	}
}

// openToNodes tells whether other machines need no certificate to speak as a node.
func (k *checker) openToNodes() bool {
	one := k.c.Cluster
	listen, problem := parseAddress(one.Listen)
	if !k.c.Clustered() || problem != "" || listen.loopback() {
		return false
	}
	if one.Cert != "" || one.Key != "" || one.CA != "" {
		return false
	}
	switch {
	case k.c.Insecure:
		k.warn("insecure", "whoever can reach %s can read and change the cluster's locks; set cluster.cert, cluster.key and cluster.ca to stop that", one.Listen)
	case !k.unread["insecure"]:
		k.fault("cluster.listen", "%s can be reached from other machines, and the nodes have no certificates; set cluster.cert, cluster.key and cluster.ca, or listen on %s, or set insecure = true",
			quote(one.Listen), loopbackAddr(int(listen.port)))
	}
	return true
}
