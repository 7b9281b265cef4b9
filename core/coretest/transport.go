package coretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// transport is one node's end of the network, for one run of raft.
type transport struct {
	net     *Network
	name    string
	mayVote func() bool
	inbox   chan raft.RPC

	mu        sync.Mutex
	heartbeat func(raft.RPC)

	once   sync.Once
	closed chan struct{}
}

func (t *transport) Consumer() <-chan raft.RPC { return t.inbox }

func (t *transport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.name) }

func (t *transport) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }

func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler takes heartbeats past the inbox, as the real transport does: they are
// answered while raft's main loop waits for the disk.
func (t *transport) SetHeartbeatHandler(f func(raft.RPC)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heartbeat = f
}

// Close ends everything that is under way from and to this end.
func (t *transport) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

func (t *transport) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

func (t *transport) AppendEntries(_ raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	return call(t, to, cloneAppend(args), nil, rpcTimeout, resp)
}

func (t *transport) RequestVote(_ raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	args = new(*args)
	return call(t, to, args, nil, rpcTimeout, resp)
}

func (t *transport) RequestPreVote(_ raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	args = new(*args)
	return call(t, to, args, nil, rpcTimeout, resp)
}

func (t *transport) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	args = new(*args)
	return call(t, to, args, nil, rpcTimeout, resp)
}

func (t *transport) InstallSnapshot(_ raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	whole, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	args = new(*args)
	return call(t, to, args, bytes.NewReader(whole), 10*rpcTimeout, resp)
}

// call takes a request to another node and its answer back into resp. A request that is
// late arrives all the same, when its caller has given up.
func call[R any](t *transport, to raft.ServerAddress, args any, data io.Reader, timeout time.Duration, resp *R) error {
	done := make(chan raft.RPCResponse, 1)
	t.net.wg.Go(func() {
		answers, err := t.send(string(to), args, data)
		if err != nil {
			if !errors.Is(err, errTimedOut) {
				done <- raft.RPCResponse{Error: err}
			}
			return
		}
		if answer, ok := t.receive(string(to), answers); ok {
			done <- answer
		}
	})
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case answer := <-done:
		return take(answer, resp)
	case <-timer.C:
		return fmt.Errorf("%T to %s: %w", args, to, errTimedOut)
	case <-t.closed:
		return errClosed
	}
}

func take[R any](answer raft.RPCResponse, resp *R) error {
	if answer.Error != nil {
		return answer.Error
	}
	*resp = *answer.Response.(*R)
	return nil
}

// pending is a request that has arrived: its answers, and the end that gives them.
type pending struct {
	answers <-chan raft.RPCResponse
	end     *transport
}

// send takes a request to the other node, and hands it over when that has time for it.
func (t *transport) send(to string, args any, data io.Reader) (pending, error) {
	end, err := t.net.travel(t, to)
	if err != nil {
		return pending{}, err
	}
	answers := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: args, Reader: data, RespChan: answers}
	switch rpc.Command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest:
		if !end.mayVote() {
			return pending{}, errVoteless
		}
	}
	if end.pastInbox(rpc) {
		return pending{answers, end}, nil
	}
	select {
	case end.inbox <- rpc:
		return pending{answers, end}, nil
	case <-end.closed:
		return pending{}, errNobody
	case <-t.closed:
		return pending{}, errClosed
	}
}

// receive takes the answer back; not ok means that it is lost.
func (t *transport) receive(to string, p pending) (raft.RPCResponse, bool) {
	var answer raft.RPCResponse
	select {
	case answer = <-p.answers:
	case <-p.end.closed:
		return answer, false
	case <-t.closed:
		return answer, false
	}
	if _, err := t.net.travel(p.end, t.name); err != nil {
		return answer, false
	}
	return answer, true
}

// pastInbox hands a heartbeat to its handler.
func (t *transport) pastInbox(rpc raft.RPC) bool {
	a, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || a.Term == 0 || a.PrevLogEntry != 0 || a.PrevLogTerm != 0 || len(a.Entries) > 0 || a.LeaderCommitIndex != 0 {
		return false
	}
	t.mu.Lock()
	handle := t.heartbeat
	t.mu.Unlock()
	if handle == nil {
		return false
	}
	t.net.wg.Go(func() { handle(rpc) })
	return true
}

// cloneAppend copies a request: raft uses its own again while the copy is on its way.
func cloneAppend(a *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	c := *a
	c.Entries = make([]*raft.Log, len(a.Entries))
	for i, l := range a.Entries {
		entry := *l
		c.Entries[i] = &entry
	}
	return &c
}

// AppendEntriesPipeline returns a pipeline, whose requests arrive in order.
func (t *transport) AppendEntriesPipeline(_ raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p := &pipeline{
		from: t, to: string(to),
		sent:     make(chan *appendFuture, inFlight),
		answered: make(chan *appendFuture, inFlight),
		ready:    make(chan raft.AppendFuture, inFlight),
		closed:   make(chan struct{}),
	}
	t.net.wg.Go(p.send)
	t.net.wg.Go(p.receive)
	return p, nil
}

// pipeline is a row of appends to one node. The first that is lost breaks it.
type pipeline struct {
	from     *transport
	to       string
	sent     chan *appendFuture
	answered chan *appendFuture
	ready    chan raft.AppendFuture
	once     sync.Once
	closed   chan struct{}
}

type appendFuture struct {
	start    time.Time
	request  *raft.AppendEntriesRequest
	response *raft.AppendEntriesResponse
	pending  pending
	done     chan struct{}
	err      error
}

func (f *appendFuture) Error() error                          { <-f.done; return f.err }
func (f *appendFuture) Start() time.Time                      { return f.start }
func (f *appendFuture) Request() *raft.AppendEntriesRequest   { return f.request }
func (f *appendFuture) Response() *raft.AppendEntriesResponse { return f.response }

func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.ready }

func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	select {
	case <-p.closed:
		return nil, raft.ErrPipelineShutdown
	default:
	}
	f := &appendFuture{start: time.Now(), request: args, response: resp, done: make(chan struct{})}
	select {
	case p.sent <- f:
		return f, nil
	case <-p.closed:
		return nil, raft.ErrPipelineShutdown
	case <-p.from.closed:
		return nil, errClosed
	}
}

func (p *pipeline) send() {
	for {
		select {
		case f := <-p.sent:
			f.pending, f.err = p.from.send(p.to, cloneAppend(f.request), nil)
			select {
			case p.answered <- f:
			case <-p.closed:
				return
			case <-p.from.closed:
				return
			}
		case <-p.closed:
			return
		case <-p.from.closed:
			return
		}
	}
}

func (p *pipeline) receive() {
	for {
		select {
		case f := <-p.answered:
			if f.err == nil {
				f.err = p.await(f)
			} else if errors.Is(f.err, errTimedOut) {
				p.sleep(rpcTimeout)
			}
			close(f.done)
			select {
			case p.ready <- f:
			case <-p.closed:
				return
			}
			if f.err != nil {
				p.Close()
				return
			}
		case <-p.closed:
			return
		case <-p.from.closed:
			return
		}
	}
}

// await takes the answer of one append, or its error when none came in time.
func (p *pipeline) await(f *appendFuture) error {
	back := make(chan raft.RPCResponse, 1)
	p.from.net.wg.Go(func() {
		if answer, ok := p.from.receive(p.to, f.pending); ok {
			back <- answer
		}
	})
	timer := time.NewTimer(rpcTimeout)
	defer timer.Stop()
	select {
	case answer := <-back:
		return take(answer, f.response)
	case <-timer.C:
		return errTimedOut
	case <-p.closed:
		return raft.ErrPipelineShutdown
	}
}

func (p *pipeline) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closed:
	}
}
