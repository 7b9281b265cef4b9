package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/link"
)

const (
	// rpcTimeout bounds one exchange with another node. A snapshot may take longer:
	// raft gives it as long for every 256 KiB.
	rpcTimeout = 5 * time.Second
	// pooledStreams is how many idle streams to one node are kept.
	pooledStreams = 3
	// maxPeers bounds from how many nodes streams are taken: every member, and some that
	// were members.
	maxPeers = 64
)

// Guard is what a transport asks of the node it belongs to.
type Guard interface {
	// MayVote tells whether this node may answer a request for its vote: not before it
	// has a configuration, since it may have forgotten what it acknowledged.
	MayVote() bool
	// Removed is called when another node says that this one was removed.
	Removed()
}

var (
	errForged   = errors.New("the request is not from the node at the other end of the stream")
	errVoteless = errors.New("this node has no configuration yet, and no vote")
)

// transport is raft's transport over the nodes' link. Outgoing streams are one
// raft.NetworkTransport's. Incoming ones are one's for each other node, so that every
// request is known to come from the node whose certificate was seen, and can be held
// against what it says of itself.
type transport struct {
	*raft.NetworkTransport // outgoing
	link                   *link.Link
	guard                  Guard
	logger                 *raftLogger
	self                   raft.ServerAddress
	rpcs                   chan raft.RPC
	listener               net.Listener
	stop                   chan struct{}
	once                   sync.Once
	wg                     sync.WaitGroup

	mu        sync.Mutex
	heartbeat func(raft.RPC)
	incoming  map[string]*incoming // by node
}

// newTransport returns a transport whose streams go over a link, one at a time.
func newTransport(l *link.Link, self string, guard Guard, logger *raftLogger) *transport {
	l.Restore() // the last one cut it
	t := &transport{
		link: l, guard: guard, logger: logger, self: raft.ServerAddress(self),
		rpcs: make(chan raft.RPC), listener: l.Raft(), stop: make(chan struct{}),
		incoming: make(map[string]*incoming),
	}
	t.NetworkTransport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Logger: logger, Stream: dialer{t}, MaxPool: pooledStreams, Timeout: rpcTimeout,
	})
	t.wg.Go(t.accept)
	return t
}

// Consumer returns the requests of the other nodes.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpcs }

// LocalAddr returns this node's address as the others know it.
func (t *transport) LocalAddr() raft.ServerAddress { return t.self }

// EncodePeer and DecodePeer turn an address into bytes and back.
func (t *transport) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }

// DecodePeer is EncodePeer's inverse.
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler sets what answers heartbeats, beside the other requests.
func (t *transport) SetHeartbeatHandler(f func(raft.RPC)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heartbeat = f
}

// Close ends every stream, also those that are in use, lets no new one be opened, and
// waits for what reads them. Raft's own transport would go on to send heartbeats.
func (t *transport) Close() error {
	err := t.NetworkTransport.Close()
	t.link.Cut()
	t.NetworkTransport.CloseStreams()
	t.once.Do(func() { close(t.stop) })
	err = errors.Join(err, t.listener.Close())
	t.mu.Lock()
	for _, in := range t.incoming {
		in.close()
	}
	t.mu.Unlock()
	t.wg.Wait()
	return err
}

// The target of an outgoing stream is the node's id and its address, so that the other
// side's certificate can be held against the id.
const targetMark = "\x00"

func target(id raft.ServerID, a raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(string(id) + targetMark + string(a))
}

// AppendEntriesPipeline is raft.Transport's, and so are those below.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, a raft.ServerAddress) (raft.AppendPipeline, error) {
	return t.NetworkTransport.AppendEntriesPipeline(id, target(id, a))
}

// AppendEntries sends entries.
func (t *transport) AppendEntries(id raft.ServerID, a raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	return t.NetworkTransport.AppendEntries(id, target(id, a), args, resp)
}

// RequestVote asks for a vote.
func (t *transport) RequestVote(id raft.ServerID, a raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.NetworkTransport.RequestVote(id, target(id, a), args, resp)
}

// RequestPreVote asks whether there would be a vote.
func (t *transport) RequestPreVote(id raft.ServerID, a raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.NetworkTransport.RequestPreVote(id, target(id, a), args, resp)
}

// InstallSnapshot sends a snapshot.
func (t *transport) InstallSnapshot(id raft.ServerID, a raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return t.NetworkTransport.InstallSnapshot(id, target(id, a), args, resp, data)
}

// TimeoutNow has a node call an election at once.
func (t *transport) TimeoutNow(id raft.ServerID, a raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.NetworkTransport.TimeoutNow(id, target(id, a), args, resp)
}

// dialer opens outgoing streams. Nothing comes in through it.
type dialer struct{ t *transport }

// Dial opens a stream to a target.
func (d dialer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, addr, _ := strings.Cut(string(to), targetMark)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := d.t.link.Dial(ctx, link.Raft, addr, id)
	if err != nil {
		if errors.Is(err, link.ErrRemoved) {
			d.t.guard.Removed()
		}
		return nil, err
	}
	return conn, nil
}

func (d dialer) Accept() (net.Conn, error) {
	<-d.t.stop
	return nil, net.ErrClosed
}

func (d dialer) Close() error {
	d.t.once.Do(func() { close(d.t.stop) })
	return nil
}

func (d dialer) Addr() net.Addr { return d.t.link.Addr() }

// accept hands the incoming streams to their node's reader.
func (t *transport) accept() {
	for {
		nc, err := t.listener.Accept()
		if err != nil {
			return // the listener was closed: it knows no other error
		}
		c := nc.(*link.Conn)
		if in := t.incomingOf(c.Peer().ID); in == nil || !in.give(c) {
			nc.Close()
		}
	}
}

// incoming reads the streams of one other node.
type incoming struct {
	id    string
	conns chan net.Conn
	stop  chan struct{}
	trans *raft.NetworkTransport
}

func (t *transport) incomingOf(id string) *incoming {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in := t.incoming[id]; in != nil {
		return in
	}
	select {
	case <-t.stop:
		return nil
	default:
	}
	if len(t.incoming) >= maxPeers {
		return nil
	}
	in := &incoming{id: id, conns: make(chan net.Conn), stop: make(chan struct{})}
	in.trans = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Logger: t.logger, Stream: receiver{in, t}, MaxPool: 1, Timeout: rpcTimeout,
	})
	in.trans.SetHeartbeatHandler(func(rpc raft.RPC) {
		t.mu.Lock()
		beat := t.heartbeat
		t.mu.Unlock()
		switch {
		case !in.sent(rpc):
			rpc.Respond(nil, errForged)
		case beat != nil:
			beat(rpc)
		default:
			rpc.Respond(nil, raft.ErrTransportShutdown)
		}
	})
	t.incoming[id] = in
	t.wg.Go(func() { t.pass(in) })
	return in
}

// pass hands a node's requests on to raft.
func (t *transport) pass(in *incoming) {
	for {
		select {
		case rpc := <-in.trans.Consumer():
			if err := t.check(in, rpc); err != nil {
				rpc.Respond(nil, err)
				continue
			}
			select {
			case t.rpcs <- rpc:
			case <-t.stop:
				rpc.Respond(nil, raft.ErrTransportShutdown)
				return
			}
		case <-t.stop:
			return
		}
	}
}

// check refuses what a node may not ask.
func (t *transport) check(in *incoming, rpc raft.RPC) error {
	if !in.sent(rpc) {
		return fmt.Errorf("%w, %s", errForged, in.id)
	}
	switch rpc.Command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest, *raft.TimeoutNowRequest:
		if !t.guard.MayVote() {
			return errVoteless
		}
	}
	return nil
}

// sent tells whether a request says to be from the node that it came from.
func (in *incoming) sent(rpc raft.RPC) bool {
	h, ok := rpc.Command.(raft.WithRPCHeader)
	return ok && string(h.GetRPCHeader().ID) == in.id
}

// give hands a stream over to be read.
func (in *incoming) give(c net.Conn) bool {
	select {
	case in.conns <- c:
		return true
	case <-in.stop:
		return false
	}
}

func (in *incoming) close() {
	in.trans.Close()
	in.trans.CloseStreams()
}

// receiver is where a node's raft.NetworkTransport gets its streams from.
type receiver struct {
	in *incoming
	t  *transport
}

func (r receiver) Accept() (net.Conn, error) {
	select {
	case c := <-r.in.conns:
		return c, nil
	case <-r.in.stop:
		return nil, net.ErrClosed
	}
}

func (r receiver) Close() error {
	select {
	case <-r.in.stop:
	default:
		close(r.in.stop)
	}
	return nil
}

func (r receiver) Addr() net.Addr { return r.t.link.Addr() }

func (r receiver) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	return nil, raft.ErrTransportShutdown
}
