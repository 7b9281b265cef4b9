package lock

import (
	"cmp"
	"slices"
)

const (
	// MaxMembers bounds the members, so that what every node keeps of them stays
	// small. Clusters have three, five or seven.
	MaxMembers = 64
	// MaxRemoved bounds how many removed ids are remembered. When one more is
	// removed, the id that was removed first is forgotten.
	MaxRemoved = 256
	// MaxMemberText bounds an id and an address of a member in bytes: a host name
	// has at most 253, and a port six more.
	MaxMemberText = 512
)

// Member is what is replicated of a node of the cluster beside raft's own
// configuration, which has its raft address.
type Member struct {
	ID     string
	Client string // address for clients; empty when Removed
	Admin  string // address of its admin server, if any; empty when Removed
	// Removed: the node was removed. Its id never comes back, so that a node that
	// was down at the time can be told from a new one.
	Removed bool
}

// valid says whether the member has an id and its texts are within bounds.
func (m *Member) valid() bool {
	return m.ID != "" && max(len(m.ID), len(m.Client), len(m.Admin)) <= MaxMemberText
}

// members are those that there are and the ids of those that were.
type members struct {
	current []Member // by id
	removed []string // in the order of their removal
}

func byID(m Member, id string) int { return cmp.Compare(m.ID, id) }

// apply adds the member, changes its addresses or removes it.
func (ms *members) apply(m *Member) Status {
	if m == nil || !m.valid() {
		return Refused
	}
	i, known := slices.BinarySearchFunc(ms.current, m.ID, byID)
	gone := slices.Contains(ms.removed, m.ID)
	switch {
	case m.Removed && gone:
		return Done
	case m.Removed:
		if known {
			ms.current = slices.Delete(ms.current, i, i+1)
		}
		ms.remember(m.ID)
		return Done
	case gone, !known && len(ms.current) == MaxMembers:
		return Refused
	case known:
		ms.current[i] = *m
	default:
		ms.current = slices.Insert(ms.current, i, *m)
	}
	return Done
}

func (ms *members) remember(id string) {
	if len(ms.removed) == MaxRemoved {
		ms.removed = slices.Delete(ms.removed, 0, 1)
	}
	ms.removed = append(ms.removed, id)
}

// list returns all of them, sorted by id.
func (ms *members) list() []Member {
	all := slices.Clone(ms.current)
	for _, id := range ms.removed {
		all = append(all, Member{ID: id, Removed: true})
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (ms *members) clone() members {
	return members{current: slices.Clone(ms.current), removed: slices.Clone(ms.removed)}
}
