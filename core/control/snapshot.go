package control

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// save streams the replicated state.
func (s *Server) save(w http.ResponseWriter, r *http.Request) error {
	free, err := s.oneSnapshot()
	if err != nil {
		return err
	}
	defer free()
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &stream{w: w, c: http.NewResponseController(w), limit: MaxSnapshot}
	err = s.node.SaveSnapshot(r.Context(), out)
	switch {
	case err == nil:
		s.log.Info("control: snapshot saved", "bytes", out.written, "by", asker(r))
		return nil
	case out.written == 0:
		return err
	}
	s.log.Warn("control: a snapshot broke off", "bytes", out.written, "by", asker(r), "error", err)
	panic(http.ErrAbortHandler) // the other side must see that it broke off
}

// restore takes a snapshot in.
func (s *Server) restore(w http.ResponseWriter, r *http.Request) error {
	waive := false
	switch r.URL.RawQuery {
	case "":
	case waiveQuery:
		waive = true
	default:
		return Refuse("", "the query %q is not understood; there is only %s", r.URL.RawQuery, waiveQuery)
	}
	free, err := s.oneSnapshot()
	if err != nil {
		return err
	}
	defer free()
	body := &stream{r: http.MaxBytesReader(w, r.Body, MaxSnapshot), c: http.NewResponseController(w)}
	err = s.node.RestoreSnapshot(r.Context(), body, waive)
	if body.begun {
		// The rest is read, so that the other side is done with writing and reads the answer.
		_, _ = io.Copy(io.Discard, body)
	}
	return s.change(w, r, "snapshot restored", "", err)
}

// oneSnapshot takes the place of the one snapshot that may be under way.
func (s *Server) oneSnapshot() (free func(), err error) {
	select {
	case s.snapshots <- struct{}{}:
		return func() { <-s.snapshots }, nil
	default:
		return nil, Refuse("Wait until it is done, and try again.", "another snapshot is being saved or restored")
	}
}

// stream reads or writes a snapshot. Each piece of it has StallTime.
type stream struct {
	w       http.ResponseWriter
	r       io.Reader
	c       *http.ResponseController
	limit   int
	written int
	begun   bool // something was read
}

var errTooLarge = errors.New("the snapshot is too large")

func (s *stream) Write(p []byte) (n int, err error) {
	if s.written+len(p) > s.limit {
		return 0, errTooLarge
	}
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), piece)]
		if err = s.c.SetWriteDeadline(time.Now().Add(StallTime)); err == nil {
			var sent int
			sent, err = s.w.Write(part)
			n, p = n+sent, p[sent:]
		}
	}
	s.written += n
	return n, err
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.c.SetReadDeadline(time.Now().Add(StallTime)); err != nil {
		return 0, err
	}
	s.begun = true
	return s.r.Read(p)
}
