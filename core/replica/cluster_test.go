package replica

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/service"
)

// mesh is some nodes in memory and fake time, with raft's own transport: what
// core/coretest is too coarse for, since here a test holds a single write or question.
type mesh struct {
	mu         sync.Mutex
	nodes      []*meshNode
	transports map[string]*raft.InmemTransport
}

type meshNode struct {
	*Replica
	service *service.Service
	disk    *heldDisk
	notes   *memoryNotes
	fatal   atomic.Pointer[error]
	up      atomic.Bool
	deaf    atomic.Bool // its service is not told that another node leads
}

// told is what a node's service is told.
type told struct {
	*service.Service
	node *meshNode
}

func (t told) Follow(leader string) {
	if !t.node.deaf.Load() {
		t.Service.Follow(leader)
	}
}

// heldDisk is a log in memory. Entries of the type that it holds are not written before
// it lets go.
type heldDisk struct {
	*raft.InmemStore
	holds atomic.Int32 // a raft.LogType, or -1
	free  chan struct{}
	once  sync.Once
}

func (d *heldDisk) letGo() { d.once.Do(func() { close(d.free) }) }

func (d *heldDisk) StoreLogs(logs []*raft.Log) error {
	for _, l := range logs {
		if int32(l.Type) == d.holds.Load() {
			<-d.free
		}
	}
	return d.InmemStore.StoreLogs(logs)
}

func (d *heldDisk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

// inMesh runs a test on a new cluster of so many nodes, of which one serves. Change may
// alter a node's options.
func inMesh(t *testing.T, nodes int, change func(*Options), do func(t *testing.T, m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &mesh{transports: make(map[string]*raft.InmemTransport)}
		var members []Member
		for i := range nodes {
			members = append(members, meshMember(string(rune('a'+i))))
		}
		for _, who := range members {
			m.start(t, who, members, change)
		}
		defer m.end(t)
		m.leader(t)
		time.Sleep(3 * time.Second) // all are there, and the leader has asked them
		do(t, m)
	})
}

// end ends every node, its disk let go.
func (m *mesh) end(t *testing.T) {
	for _, n := range m.nodes {
		n.disk.letGo()
		n.end(t)
	}
}

func meshMember(id string) Member { return Member{ID: id, Raft: id + ":1", Client: id + ":2"} }

// start starts a node.
func (m *mesh) start(t *testing.T, who Member, members []Member, change func(*Options)) *meshNode {
	t.Helper()
	n := &meshNode{disk: &heldDisk{InmemStore: raft.NewInmemStore(), free: make(chan struct{})}, notes: &memoryNotes{}}
	n.disk.holds.Store(-1)
	snapshots := raft.NewInmemSnapshotStore()
	o := Options{
		NodeID: who.ID, Members: members, Self: who, Timers: DefaultTimers(), Notes: n.notes,
		Logger:    slog.New(slog.DiscardHandler),
		Transport: func(Guard) (raft.Transport, error) { return m.join(who.Raft), nil },
		Stores: func() (*Stores, error) {
			return &Stores{Log: n.disk, Stable: n.disk, Snapshots: snapshots, Close: func() error { return nil }}, nil
		},
		Ask:   m.ask,
		Room:  func() bool { return true },
		Fatal: func(err error) { n.fatal.Store(&err) },
	}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	n.Replica = r
	n.service = service.New(r, service.Config{Limits: service.DefaultLimits(), Clustered: true})
	m.mu.Lock()
	m.nodes = append(m.nodes, n)
	m.mu.Unlock()
	n.up.Store(true)
	r.Start(told{n.service, n})
	return n
}

// join gives an address a new transport.
func (m *mesh) join(addr string) *raft.InmemTransport {
	_, mine := raft.NewInmemTransport(raft.ServerAddress(addr))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transports[addr] = mine
	for other, theirs := range m.transports {
		if other != addr {
			mine.Connect(raft.ServerAddress(other), theirs)
			theirs.Connect(raft.ServerAddress(addr), mine)
		}
	}
	return mine
}

// ask answers for a node: that it was removed, when another one knows so.
func (m *mesh) ask(ctx context.Context, who Member) (Peer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.nodes {
		if n.opts.NodeID == who.ID && n.up.Load() {
			st := n.Status()
			return Peer{ID: who.ID, Storage: st.Storage, List: st.List, Voters: st.Voters, Applied: st.Applied, Supports: st.Supports, Client: n.opts.Self.Client}, nil
		}
	}
	return Peer{}, errors.New("connection refused")
}

// end stops a node, or leaves one that was stopped.
func (n *meshNode) end(t *testing.T) {
	t.Helper()
	if !n.up.CompareAndSwap(true, false) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("%s: %v", n.opts.NodeID, err)
	}
	n.service.Close()
}

// leader returns the node that serves, as soon as one does.
func (m *mesh) leader(t *testing.T, but ...*meshNode) *meshNode {
	t.Helper()
	for range 60_000 {
		for _, n := range m.nodes {
			if n.serving.Load() && n.up.Load() && (len(but) == 0 || but[0] != n) {
				return n
			}
		}
		time.Sleep(time.Millisecond)
	}
	for _, n := range m.nodes {
		t.Logf("%s: up %v, %+v", n.opts.NodeID, n.up.Load(), n.Status())
	}
	t.Fatal("no node serves")
	return nil
}

// but returns the nodes but one.
func (m *mesh) but(one *meshNode) (list []*meshNode) {
	for _, n := range m.nodes {
		if n != one {
			list = append(list, n)
		}
	}
	return list
}

// A node that was elected and whose disk hangs at the very first write, so that raft takes
// nothing, gives way: its heartbeats would keep the followers loyal for ever.
func TestALeaderWhoseFirstWriteHangsGivesWay(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		old := m.leader(t)
		next := m.but(old)[0]
		next.disk.holds.Store(int32(raft.LogNoop))
		for range 10 { // it may take more than one election's time
			if old.TransferLeadership(t.Context(), next.opts.NodeID) == nil {
				break
			}
		}
		time.Sleep(time.Second)
		if st := next.Status(); st.Role != Leader {
			t.Fatalf("it was not elected: %+v", st)
		}
		m.leader(t, next)
	})
}

// The same when what hangs is a change of the members.
func TestALeaderThatHangsInAChangeOfMembersGivesWay(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		old := m.leader(t)
		old.disk.holds.Store(int32(raft.LogConfiguration))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := old.AddMember(ctx, meshMember("x")); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
		for range 10 { // somebody wants something
			old.service.Order(lock.Command{Kind: lock.KindLevel, Level: lock.Level}, func(lock.Result, error) {})
			time.Sleep(time.Second)
		}
		m.leader(t, old)
	})
}

// A restore that hangs ends the generation: nothing is served meanwhile.
func TestARestoreThatHangsGivesWay(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		old := m.leader(t)
		var file strings.Builder
		if err := old.SaveSnapshot(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		old.disk.holds.Store(int32(raft.LogNoop))
		done := make(chan error, 1)
		go func() { done <- old.RestoreSnapshot(context.Background(), strings.NewReader(file.String()), true) }()
		time.Sleep(restorePatience + time.Second)
		m.leader(t, old)
		old.disk.letGo()
		if err := <-done; !errors.Is(err, ErrUnknown) {
			t.Errorf("%v", err)
		}
	})
}

// A member that is added while the leader asks the others about themselves stays: the
// list by which they were asked does not have it.
func TestAMemberIsAddedWhileTheOthersAreAsked(t *testing.T) {
	var asked atomic.Int32
	slow := func(o *Options) {
		ask := o.Ask
		o.Ask = func(ctx context.Context, m Member) (Peer, error) {
			if m.ID != "x" {
				return ask(ctx, m)
			}
			asked.Add(1)
			<-ctx.Done() // as a machine that is off
			return Peer{}, ctx.Err()
		}
	}
	inMesh(t, 1, slow, func(t *testing.T, m *mesh) {
		one := m.leader(t)
		if err := one.AddMember(t.Context(), meshMember("x")); err != nil {
			t.Fatal(err)
		}
		for before := asked.Load(); asked.Load() == before; {
			time.Sleep(time.Millisecond)
		}
		if err := one.AddMember(t.Context(), meshMember("y")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if one.IsRemoved("y") {
			t.Error("the new member was marked as removed")
		}
	})
}

// What a member says of itself is data: too much of it changes nothing.
func TestAMembersAddressesAreBounded(t *testing.T) {
	for _, client := range []string{strings.Repeat("x", 1<<16), strings.Repeat("x", 192), "x:1\nLy:1"} {
		says := func(o *Options) {
			ask := o.Ask
			o.Ask = func(ctx context.Context, m Member) (Peer, error) {
				if m.ID == "x" {
					return Peer{ID: "x", Client: client, Supports: 1}, nil
				}
				return ask(ctx, m)
			}
		}
		inMesh(t, 1, says, func(t *testing.T, m *mesh) {
			one := m.leader(t)
			if err := one.AddMember(t.Context(), meshMember("x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if got := one.member("x").Client; got != "x:2" {
				t.Errorf("clients would be told %.40q", got)
			}
			who := meshMember("y")
			who.Client = client
			if err := one.AddMember(t.Context(), who); !isRefusal(err) {
				t.Errorf("a member with %d bytes for clients was added: %v", len(client), err)
			}
		})
	}
}

func isRefusal(err error) bool {
	var r *Refusal
	return errors.As(err, &r)
}

// Removals that are asked for at the same moment are decided one after the other: each
// alone would leave a majority, all of them do not.
func TestRemovalsAtTheSameTimeKeepTheMajority(t *testing.T) {
	inMesh(t, 5, nil, func(t *testing.T, m *mesh) {
		one := m.leader(t)
		m.but(one)[3].end(t)
		time.Sleep(5 * time.Second)
		var wg sync.WaitGroup
		for _, n := range m.but(one)[:3] {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := one.RemoveMember(ctx, n.opts.NodeID); err != nil && !isRefusal(err) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(5 * time.Second)
		m.leader(t)
		if voters := len(one.Status().Voters); voters < 3 {
			t.Errorf("%d voters are left, one of them dead", voters)
		}
	})
}

// A leader that was removed ends in order: its generation ends raft, not raft itself,
// behind which the stores would be closed while it still writes.
func TestARemovedLeadersRaftIsEndedByItsGeneration(t *testing.T) {
	inMesh(t, 3, nil, func(t *testing.T, m *mesh) {
		old := m.leader(t)
		time.Sleep(3 * time.Second)
		if err := old.RemoveMember(t.Context(), old.opts.NodeID); err != nil {
			t.Fatal(err)
		}
		next := m.leader(t, old)
		g, err := old.current()
		if err != nil {
			t.Fatal(err)
		}
		if st := g.raft.State(); st == raft.Shutdown {
			t.Errorf("raft is %v, and the generation lives", st)
		}
		time.Sleep(2 * time.Second)
		if old.serving.Load() || !next.IsRemoved(old.opts.NodeID) {
			t.Error("it serves, or is not known as removed")
		}
	})
}

// A node ends though an entry was committed and not applied when it was told to: raft
// forgets such entries when it is shut down, and never answers who waits for them.
func TestANodeEndsWithACommittedEntryUnderWay(t *testing.T) {
	for range 8 { // raft forgets it every other time
		inMesh(t, 1, nil, func(t *testing.T, m *mesh) {
			node := m.leader(t)
			g, err := node.current()
			if err != nil {
				t.Fatal(err)
			}
			pending := func(entries string) {
				for g.raft.Stats()["fsm_pending"] != entries {
					runtime.Gosched()
				}
			}
			ended := make(chan struct{})
			node.deaf.Store(true)            // its service would look at the machine
			g.fsm.look(func(*lock.Machine) { // nothing is applied meanwhile
				entry := lock.AppendEntry(nil, &lock.Entry{Commands: []lock.Command{{Kind: lock.KindLevel, Level: lock.Level}}})
				before := g.raft.AppliedIndex()
				g.raft.Apply(entry, 0)
				for g.raft.AppliedIndex() == before {
					runtime.Gosched()
				}
				pending("0")
				g.wg.Go(func() { _, _ = g.apply(entry, func() {}) }) // as the loops do
				pending("1")
				go func() { defer close(ended); node.end(t) }()
				for range 10_000 { // raft has time to be shut down
					runtime.Gosched()
				}
			})
			<-ended
		})
	}
}

// A node that joined has state, and notes it: a log that is deleted later is noticed.
func TestANodeThatJoinedHasState(t *testing.T) {
	inMesh(t, 1, nil, func(t *testing.T, m *mesh) {
		joined := m.start(t, meshMember("d"), nil, nil)
		if err := m.leader(t).AddMember(t.Context(), meshMember("d")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if st := joined.Status(); st.Storage != HasState || !st.Ready {
			t.Errorf("%+v", st)
		}
		if n, err := readNote(joined.notes); err != nil || !n.Began {
			t.Errorf("%+v, %v", n, err)
		}
	})
}

// The leader's address for the nodes is the members', not what it listens on.
func TestALeaderIsFoundAtItsMembersAddress(t *testing.T) {
	inMesh(t, 1, nil, func(t *testing.T, m *mesh) {
		old := m.leader(t)
		m.start(t, meshMember("d"), nil, func(o *Options) {
			o.Transport = func(Guard) (raft.Transport, error) { return &listening{m.join("d:1")}, nil }
		})
		if err := old.AddMember(t.Context(), meshMember("d")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := old.PromoteMember(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		if err := old.TransferLeadership(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		m.leader(t, old)
		time.Sleep(time.Second)
		if got := old.Status().Leader.Raft; got != "d:1" {
			t.Errorf("it is asked for at %s", got)
		}
	})
}

// A node whose raft can't be started ends all the same, with another one's request for a
// vote under way.
func TestANodeWithoutRaftEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mesh{transports: make(map[string]*raft.InmemTransport)}
		n := m.start(t, meshMember("a"), nil, func(o *Options) {
			o.Timers = Timers{} // raft does not take them
			o.Transport = func(g Guard) (raft.Transport, error) {
				return &asking{m.join("a:1"), g}, nil
			}
		})
		defer m.end(t)
		time.Sleep(3 * time.Second)
		if st := n.Status(); !strings.Contains(st.Why, "start raft") {
			t.Errorf("%+v", st)
		}
	})
}

// listening is a transport that says of itself what it listens on.
type listening struct{ *raft.InmemTransport }

func (*listening) LocalAddr() raft.ServerAddress { return "[::]:1" }

// asking is a transport that is in the middle of a request for a vote when it is closed,
// and waits for it, as the real one does.
type asking struct {
	*raft.InmemTransport
	guard Guard
}

func (a *asking) Close() error {
	if a.guard.MayVote() {
		return errors.New("it may vote")
	}
	return a.InmemTransport.Close()
}

// A transport that is closed is cut: a leader whose disk hangs would else keep its
// followers loyal by heartbeats, and by what it still has open.
func TestAClosedTransportIsCut(t *testing.T) {
	a, b := join(t, "a"), join(t, "b")
	var beats atomic.Int32
	b.SetHeartbeatHandler(func(rpc raft.RPC) {
		beats.Add(1)
		rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
	})
	beat := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ID: []byte("a"), Addr: []byte("a:1")}, Term: 9}
	if err := a.AppendEntries("b", b.addr, beat, &raft.AppendEntriesResponse{}); err != nil {
		t.Fatal(err)
	}
	pipeline, err := a.AppendEntriesPipeline("b", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer pipeline.Close()
	if err := a.transport.Close(); err != nil {
		t.Fatal(err)
	}
	before := beats.Load()
	if err := a.AppendEntries("b", b.addr, beat, &raft.AppendEntriesResponse{}); err == nil {
		t.Error("a heartbeat went out")
	}
	if f, err := pipeline.AppendEntries(beat, &raft.AppendEntriesResponse{}); err == nil && f.Error() == nil {
		t.Error("a pipeline goes on")
	}
	if beats.Load() != before {
		t.Error("the other node heard of it")
	}
	again := newTransport(a.link, string(a.addr), a.guard, a.logger)
	if err := again.AppendEntries("b", b.addr, beat, &raft.AppendEntriesResponse{}); err != nil {
		t.Errorf("the next generation is cut as well: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A snapshot of a newer version ends the node with a clear message, as an entry does: it
// would else follow for ever and never catch up.
func TestASnapshotOfANewerVersionEndsTheNode(t *testing.T) {
	var file strings.Builder
	if _, err := lock.New().Snapshot().WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change string
		ends   bool
	}{
		{"newer", "ticketing snapshot\xff", true},
		{"damaged", "ticketing snapshOt\x01", false}, // raft has an older one, or the leader's
	} {
		var broken error
		f := newFSM(nil, func(err error) { broken = err }, func() {})
		text := c.change + file.String()[len(c.change):]
		if err := f.Restore(io.NopCloser(strings.NewReader(text))); err == nil {
			t.Errorf("%s: it was restored", c.name)
		}
		if errors.Is(broken, ErrTooNew) != c.ends {
			t.Errorf("%s: %v", c.name, broken)
		}
	}
}
