package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
)

// Dial opens a control stream to the node id at addr, as link.Link's Dial does. An
// empty id is any node of the cluster.
type Dial func(ctx context.Context, addr, id string) (net.Conn, error)

// Client asks one node. Its methods may be called from any goroutine. Their errors
// are *Error: of class Elsewhere, with ErrUnreachable behind it, when the node can't be
// asked; of class Unknown when a change was asked for and no answer came.
type Client struct {
	name string // of the node, for people
	// kept keeps its connection for the next request; once does not: a change must not
	// go over a connection of which nobody knows whether it still stands.
	kept, once *http.Transport
}

// NewClient returns a client of the node id at addr, a host:port. Close it in the end.
func NewClient(dial Dial, addr, id string) *Client {
	transport := func(keep bool) *http.Transport {
		return &http.Transport{
			DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, addr, id) },
			DisableKeepAlives:      !keep,
			DisableCompression:     true,
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        idleTime / 2, // before the server's
			MaxResponseHeaderBytes: maxHeader,
			ExpectContinueTimeout:  continueFor,
		}
	}
	name := "the node at " + addr
	if id != "" {
		name = "node " + id + " at " + addr
	}
	return &Client{name, transport(true), transport(false)}
}

// Close closes the connection that is kept. The client can go on to be used.
func (c *Client) Close() { c.kept.CloseIdleConnections() }

// Status asks how the node stands.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.ask(ctx, call{method: http.MethodGet, path: "/status", transport: c.kept}, &s)
}

// Members asks for every member of the cluster.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	var list []Member
	return list, c.ask(ctx, call{method: http.MethodGet, path: "/members"}, &list)
}

// Add makes a node a non-voting member.
func (c *Client) Add(ctx context.Context, who Peer) error {
	return c.ask(ctx, call{method: http.MethodPost, path: "/members", send: who}, nil)
}

// Remove removes a member for good.
func (c *Client) Remove(ctx context.Context, id string) error {
	return c.ask(ctx, call{method: http.MethodDelete, path: "/members/" + url.PathEscape(id)}, nil)
}

// Promote makes a non-voter a voter.
func (c *Client) Promote(ctx context.Context, id string) error {
	return c.ask(ctx, call{method: http.MethodPost, path: "/members/" + url.PathEscape(id) + "/promote"}, nil)
}

// Transfer hands the leadership to a member, or to any when id is empty.
func (c *Client) Transfer(ctx context.Context, id string) error {
	return c.ask(ctx, call{method: http.MethodPost, path: "/leader", send: transfer{id}}, nil)
}

// transfer is the body of POST /leader.
type transfer struct {
	ID string `json:"id"` // empty: any voter
}

// SaveSnapshot writes the cluster's state to w. On an error what was written is not
// to be used.
func (c *Client) SaveSnapshot(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, SnapshotTime)
	defer cancel()
	res, err := c.send(ctx, call{method: http.MethodGet, path: "/snapshot"})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return answered(res, false)
	}
	n, err := io.Copy(w, io.LimitReader(res.Body, MaxSnapshot+1))
	switch {
	case err != nil:
		return newError(Elsewhere, "Try again.", "the snapshot broke off after %d bytes: %w", []any{n, err})
	case n > MaxSnapshot:
		return Refuse("", "the snapshot has more than %d bytes", MaxSnapshot)
	}
	return nil
}

// RestoreSnapshot sends a snapshot that is to take the place of the state of a cluster
// that has granted nothing. waive leaves out the quiet period after it.
func (c *Client) RestoreSnapshot(ctx context.Context, r io.Reader, waive bool) error {
	ctx, cancel := context.WithTimeout(ctx, SnapshotTime)
	defer cancel()
	path := "/snapshot"
	if waive {
		path += "?" + waiveQuery
	}
	res, err := c.send(ctx, call{method: http.MethodPost, path: path, body: io.NopCloser(r), change: true})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return answered(res, true)
}

// waiveQuery is the query by which a restore has no quiet period.
const waiveQuery = "quiet-period=waived"

// call is a request.
type call struct {
	method, path string
	send         any           // its JSON body; nil for none
	body         io.ReadCloser // or this, which need not be small
	change       bool          // it may change something
	header       http.Header
	transport    *http.Transport // nil: one that keeps no connection
}

// ask sends a request and reads its answer into v, unless that is nil.
func (c *Client) ask(ctx context.Context, q call, v any) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	q.change = q.method != http.MethodGet
	res, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 || v == nil {
		return answered(res, q.change)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(v); err != nil {
		return newError(Elsewhere, "Check that the node runs a version that fits this one.", "the answer of %s can't be read: %w", []any{c.name, err})
	}
	return nil
}

// send sends a request and returns its answer, whatever its status.
func (c *Client) send(ctx context.Context, q call) (*http.Response, error) {
	if q.send != nil {
		data, err := json.Marshal(q.send)
		if err != nil {
			return nil, err
		}
		q.body = io.NopCloser(bytes.NewReader(data))
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	// The stream leads to the node already, so the URL's host is of no account.
	req, err := http.NewRequestWithContext(ctx, q.method, "http://node"+q.path, q.body)
	if err != nil {
		return nil, Refuse("", "%w", err)
	}
	maps.Copy(req.Header, q.header)
	if q.body != nil && q.send == nil {
		req.Header.Set("Expect", "100-continue") // not sent for nothing
	}
	transport := q.transport
	if transport == nil {
		transport = c.once
	}
	res, err := transport.RoundTrip(req)
	if err == nil {
		return res, nil
	}
	switch {
	case !connected.Load():
		return nil, newError(Elsewhere, "Check the address, and that the node runs.", "%s %w: %w", []any{c.name, ErrUnreachable, err})
	case q.change:
		return nil, Doubt("Look at the members before trying again.", "no answer came from %s: %w", c.name, err)
	}
	return nil, newError(Elsewhere, "Try again.", "no answer came from %s: %w", []any{c.name, err})
}

// answered returns what an answer says: nil, or its error.
func answered(res *http.Response, change bool) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode/100 == 2 && err == nil {
		return nil
	}
	var e Error
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	switch {
	case err == nil && (e.Class == Refused || e.Class == Elsewhere || e.Class == Unknown && change):
		return &e
	case err == nil && e.Text != "":
		err = errors.New(e.Text)
	case err == nil:
		err = fmt.Errorf("HTTP status %s", res.Status)
	}
	if change {
		return Doubt(e.Todo, "%w", err)
	}
	return newError(Elsewhere, e.Todo, "%w", []any{err})
}

// Pool has the clients of several nodes, so that a connection to each is kept. Its
// methods may be called from any goroutine.
type Pool struct {
	dial    Dial
	mu      sync.Mutex
	clients map[target]*Client
}

type target struct{ addr, id string }

// NewPool returns an empty pool.
func NewPool(dial Dial) *Pool { return &Pool{dial: dial, clients: map[target]*Client{}} }

// At returns the client of the node id at addr.
func (p *Pool) At(addr, id string) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := target{addr, id}
	c := p.clients[at]
	if c == nil {
		if len(p.clients) >= maxClients {
			p.drop()
		}
		c = NewClient(p.dial, addr, id)
		p.clients[at] = c
	}
	return c
}

// Close closes the connections that are kept.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
}

// drop forgets every client. mu is held.
func (p *Pool) drop() {
	for _, c := range p.clients {
		c.Close()
	}
	clear(p.clients)
}
