package replica

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/link"
)

// guarded is a guard that a test sets.
type guarded struct {
	votes   atomic.Bool
	removed atomic.Bool
}

func (g *guarded) MayVote() bool { return g.votes.Load() }
func (g *guarded) Removed()      { g.removed.Store(true) }

// joined is one node's transport on this machine's loopback.
type joined struct {
	*transport
	guard  *guarded
	remove atomic.Bool // it refuses every node as removed
	addr   raft.ServerAddress
}

func join(t *testing.T, id string) *joined {
	t.Helper()
	j := &joined{guard: &guarded{}}
	l, err := link.Listen(context.Background(), link.Config{
		NodeID: id, Listen: "127.0.0.1:0", Refuse: func(string) bool { return j.remove.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	j.addr = raft.ServerAddress(l.Addr().String())
	j.transport = newTransport(l, l.Addr().String(), j.guard, newRaftLogger(slog.New(slog.DiscardHandler)))
	t.Cleanup(func() {
		if err := errors.Join(j.transport.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return j
}

// answer lets a node grant every vote that reaches raft.
func (j *joined) answer(t *testing.T) {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case rpc := <-j.Consumer():
				rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
			case <-done:
				return
			}
		}
	}()
}

func vote(from *joined, to *joined, toID, says string) error {
	var resp raft.RequestVoteResponse
	args := &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{ID: []byte(says)}}
	return from.RequestVote(raft.ServerID(toID), to.addr, args, &resp)
}

// What a node says in raft's name it says in its own: the id in a request is that of
// the other end of the stream. A node that knows no cluster yet gives no vote.
func TestRequestsAreHeldAgainstTheirSender(t *testing.T) {
	a, b := join(t, "a"), join(t, "b")
	b.answer(t)
	if err := vote(a, b, "b", "a"); err == nil || !strings.Contains(err.Error(), "no configuration") {
		t.Errorf("a vote of a node that knows no cluster: %v", err)
	}
	b.guard.votes.Store(true)
	if err := vote(a, b, "b", "a"); err != nil {
		t.Errorf("a true request: %v", err)
	}
	if err := vote(a, b, "b", "c"); err == nil || !strings.Contains(err.Error(), "is not from the node") {
		t.Errorf("a request in another's name: %v", err)
	}
	beat := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ID: []byte("c"), Addr: []byte("c:1")}, Term: 9}
	b.SetHeartbeatHandler(func(rpc raft.RPC) { rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil) })
	if err := a.AppendEntries("b", b.addr, beat, &raft.AppendEntriesResponse{}); err == nil || !strings.Contains(err.Error(), "is not from the node") {
		t.Errorf("a heartbeat in another's name: %v", err)
	}
}

// A stream goes to the node that is meant, or not at all.
func TestAStreamGoesToTheNodeThatIsMeant(t *testing.T) {
	a, b := join(t, "a"), join(t, "b")
	if err := vote(a, b, "c", "a"); !errors.Is(err, link.ErrWrongNode) {
		t.Errorf("%v", err)
	}
}

// A node that was removed is told so when it asks for a vote.
func TestARemovedNodeIsTold(t *testing.T) {
	a, b := join(t, "a"), join(t, "b")
	b.remove.Store(true)
	if err := vote(a, b, "b", "a"); !errors.Is(err, link.ErrRemoved) {
		t.Errorf("%v", err)
	}
	if !a.guard.removed.Load() {
		t.Error("the node does not know that it was removed")
	}
}
