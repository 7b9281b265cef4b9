package control

import (
	"errors"
	"io"
	"net/http"
)

// Headers of a request that another node passes on.
const (
	forwardedHeader = "Ticketing-Forwarded" // by which node
	byHeader        = "Ticketing-By"        // for whom
)

// byLeader returns a handler that leaves a request to the leader. Whether this node
// leads is the node's own word, by its error: it may have changed since it was looked.
func (s *Server) byLeader(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		status := s.node.Status()
		switch {
		case status.Role == Leader:
			err := h(w, r)
			if e, ok := errors.AsType[*Error](err); ok && e.Class == Elsewhere && e.Leader.ID == status.Self.ID {
				return newError(Elsewhere, "Try again in a second.", "node %s was elected, and does not serve yet", []any{e.Leader.ID})
			}
			return err
		case status.Leader.ID == "" || status.Leader.ID == status.Self.ID:
			return Ask(Peer{})
		case r.Header.Get(forwardedHeader) != "":
			return Ask(status.Leader) // one hop only, lest two that err send it to and fro
		}
		return s.forward(w, r, status)
	}
}

// forward passes a request on to the leader, and its answer back.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, status Status) error {
	q := call{method: r.Method, path: r.URL.RequestURI(), change: r.Method != http.MethodGet, header: http.Header{
		forwardedHeader: {status.Self.ID},
		byHeader:        {asker(r)},
	}}
	if r.ContentLength != 0 {
		q.body = http.MaxBytesReader(w, r.Body, MaxSnapshot)
	}
	leader := s.peers.At(status.Leader.Raft, status.Leader.ID)
	res, err := leader.send(r.Context(), q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
	w.WriteHeader(res.StatusCode)
	n, err := io.Copy(w, io.LimitReader(res.Body, MaxSnapshot+1))
	if err != nil || n > MaxSnapshot {
		panic(http.ErrAbortHandler) // the other side must see that it broke off
	}
	return nil
}
