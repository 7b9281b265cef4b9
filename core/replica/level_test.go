package replica

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

// orders is a service that notes what it is ordered to propose.
type orders struct {
	Service
	list []lock.Command
}

func (o *orders) Order(c lock.Command, _ func(lock.Result, error)) { o.list = append(o.list, c) }

// The feature level is raised when every member says that it knows a newer one, and to
// the newest that all know. One that has not been heard lately keeps it as it is: it might
// be of the older version, and would stop at what it can't read.
func TestTheLevelIsRaisedWhenEveryMemberKnowsIt(t *testing.T) {
	now := time.Now()
	says := func(level uint32, at time.Time) seen { return seen{peer: Peer{Supports: level}, at: at} }
	for _, c := range []struct {
		name string
		own  uint32
		b, c seen
		want uint32 // 0: nothing is ordered
	}{
		{"all know it", 3, says(3, now), says(3, now), 3},
		{"one knows less", 3, says(2, now), says(3, now), 2},
		{"one is of the old version", 3, says(lock.Level, now), says(3, now), 0},
		{"this node is", lock.Level, says(3, now), says(3, now), 0},
		{"one was not heard lately", 3, says(3, now.Add(-peerFresh)), says(3, now), 0},
		{"one was never heard", 3, seen{}, says(3, now), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := bare(t, note{})
			service := &orders{}
			r.service, r.opts.Level = service, c.own
			r.peers["b"], r.peers["c"] = c.b, c.c
			r.fsm.Store(newFSM(nil, func(error) {}, func() {}))
			g := &generation{r: r}
			g.raiseLevel([]raft.Server{{ID: "a"}, {ID: "b"}, {ID: "c"}})
			var got uint32
			for _, o := range service.list {
				got = o.Level
			}
			if got != c.want || len(service.list) > 1 {
				t.Errorf("ordered %+v, want level %d", service.list, c.want)
			}
		})
	}
}

// An entry that this version can't read stops the node, with its reason, and nothing
// after it is applied: replicas must not differ.
func TestWhatCantBeReadStopsTheNode(t *testing.T) {
	var told error
	f := newFSM(nil, func(err error) { told = err }, func() {})
	good := lock.AppendEntry(nil, &lock.Entry{First: 1, Commands: []lock.Command{{Kind: lock.KindGrant, Key: "k", Lease: time.Second}}})
	answers := f.ApplyBatch([]*raft.Log{{Index: 1, Data: []byte("x")}, {Index: 2, Data: good}})
	for i, a := range answers {
		if _, failed := a.(error); !failed {
			t.Errorf("entry %d was answered with %v", i+1, a)
		}
	}
	if told == nil || f.machine.Len() != 0 {
		t.Errorf("told %v, %d grants", told, f.machine.Len())
	}
	if _, err := f.Snapshot(); err == nil {
		t.Error("a snapshot of a node that stopped")
	}
}
