package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ticketing-io/ticketing/core/link"
)

// Server answers the requests to a node.
type Server struct {
	node   Node
	peers  *Pool
	log    *slog.Logger
	http   http.Server
	cancel context.CancelFunc
	// snapshots has a place for the one snapshot that may be under way: each is a copy
	// of the whole table.
	snapshots chan struct{}
}

// NewServer returns a server for a node. It passes what is the leader's business on to
// it over a client of peers. log is told of each change; nil for nobody.
func NewServer(node Node, peers *Pool, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{node: node, peers: peers, log: log, cancel: cancel, snapshots: make(chan struct{}, 1)}
	s.http = http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if c, ok := c.(interface{ Peer() link.Identity }); ok {
				return context.WithValue(ctx, peerKey{}, c.Peer())
			}
			return ctx
		},
	}
	return s
}

type peerKey struct{}

// Serve answers requests over the connections of a listener, until Close, and returns
// nil then; else why it can't go on.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Close takes no more requests and waits for those under way. When ctx ends first it
// cuts them and returns ctx's error. It does not close the Pool.
func (s *Server) Close(ctx context.Context) error {
	defer s.cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.cancel()
		s.http.Close()
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.handle(AnswerTime, func(w http.ResponseWriter, r *http.Request) error {
		return answer(w, s.node.Status())
	}))
	mux.HandleFunc("GET /members", s.handle(AnswerTime, s.byLeader(s.members)))
	mux.HandleFunc("POST /members", s.handle(AnswerTime, s.byLeader(s.add)))
	mux.HandleFunc("DELETE /members/{id}", s.handle(AnswerTime, s.byLeader(s.remove)))
	mux.HandleFunc("POST /members/{id}/promote", s.handle(AnswerTime, s.byLeader(s.promote)))
	mux.HandleFunc("POST /leader", s.handle(AnswerTime, s.byLeader(s.transfer)))
	mux.HandleFunc("GET /snapshot", s.handle(SnapshotTime, s.byLeader(s.save)))
	mux.HandleFunc("POST /snapshot", s.handle(SnapshotTime, s.byLeader(s.restore)))
	mux.HandleFunc("/", s.handle(AnswerTime, func(_ http.ResponseWriter, r *http.Request) error {
		return Refuse("Use versions of the program and the node that fit each other.", "there is no %s %s", r.Method, r.URL.Path)
	}))
	return mux
}

// handler answers a request, or returns an error having written nothing.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle bounds a request's time, and answers with a handler's error.
func (s *Server) handle(bound time.Duration, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), bound)
		defer cancel()
		deadline, _ := ctx.Deadline()
		c := http.NewResponseController(w)
		// The answer may take a moment more than the node.
		if c.SetReadDeadline(deadline) != nil || c.SetWriteDeadline(deadline.Add(headerTime)) != nil {
			return // the connection has ended
		}
		if err := h(w, r.WithContext(ctx)); err != nil {
			refuse(w, err)
		}
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = Doubt("", "%w", err)
	}
	status := http.StatusInternalServerError
	switch e.Class {
	case Refused:
		status = http.StatusConflict
	case Elsewhere:
		status = http.StatusMisdirectedRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// That it can't be sent is seen by the other side.
	_ = json.NewEncoder(w).Encode(e)
}

// answer answers with v.
func answer(w http.ResponseWriter, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n')) // as in refuse
	return nil
}

// read reads a request's JSON.
func read(r *http.Request, v any) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	switch {
	case err != nil:
		return Refuse("Try again.", "the request can't be read: %w", err)
	case len(data) > maxRequest:
		return Refuse("", "the request has more than %d bytes", maxRequest)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	// What this version does not know it could not do.
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return Refuse("Use versions of the program and the node that fit each other.", "the request is not understood: %w", err)
	}
	return nil
}

func (s *Server) members(w http.ResponseWriter, r *http.Request) error {
	list, err := s.node.Members(r.Context())
	if err != nil {
		return err
	}
	return answer(w, list)
}

func (s *Server) add(w http.ResponseWriter, r *http.Request) error {
	var who Peer
	if err := read(r, &who); err != nil {
		return err
	}
	return s.change(w, r, "member added", who.ID, s.node.Add(r.Context(), who))
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return s.change(w, r, "member removed", id, s.node.Remove(r.Context(), id))
}

func (s *Server) promote(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return s.change(w, r, "member promoted", id, s.node.Promote(r.Context(), id))
}

func (s *Server) transfer(w http.ResponseWriter, r *http.Request) error {
	var to transfer
	if err := read(r, &to); err != nil {
		return err
	}
	return s.change(w, r, "leadership transferred", to.ID, s.node.Transfer(r.Context(), to.ID))
}

// change logs a change that was made, or perhaps, and answers.
func (s *Server) change(w http.ResponseWriter, r *http.Request, what, id string, err error) error {
	by := asker(r)
	switch {
	case err == nil:
		s.log.Info("control: made", "change", what, "member", id, "by", by)
		return answer(w, struct{}{})
	case ClassOf(err) == Unknown:
		s.log.Warn("control: perhaps made", "change", what, "member", id, "by", by, "error", err)
	case ClassOf(err) == Refused:
		s.log.Info("control: refused", "change", what, "member", id, "by", by, "error", err)
	}
	return err
}

// asker names who asks, for the log.
func asker(r *http.Request) string {
	peer, ok := r.Context().Value(peerKey{}).(link.Identity)
	switch {
	case !ok:
		return "unknown"
	case !peer.Operator:
		if by := r.Header.Get(byHeader); by != "" && len(by) <= maxAsker {
			return by + " at node " + peer.ID
		}
		return "node " + peer.ID
	case peer.ID == "":
		return "operator"
	}
	return "operator " + peer.ID
}

// maxAsker bounds in bytes what another node says of who asked it.
const maxAsker = 128
