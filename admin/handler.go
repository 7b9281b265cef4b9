package admin

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// handler returns what answers requests.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.config.Metrics)
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", s.ready)
	return unguessed(ofThisMachine(http.MaxBytesHandler(mux, bodyMax)))
}

// live answers that the process is there.
func live(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

// ready answers whether the node is ready for clients, and if not, why.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.config.Ready(); err != nil {
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	say(w, http.StatusOK, "ok")
}

// say answers with one plain line.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, strings.ReplaceAll(line, "\n", "; "))
}

// unguessed has browsers take an answer for what it says it is.
func unguessed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// ofThisMachine answers only who asked for this machine by a name or address of loopback.
// A web page elsewhere whose name leads here could else read the answers with its visitor's
// browser (DNS rebinding).
func ofThisMachine(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(hostOf(r.Host)) {
			say(w, http.StatusForbidden, "ask for localhost, 127.0.0.1 or [::1]")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf returns a Host header's host, without its port.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	if strings.HasPrefix(header, "[") && strings.HasSuffix(header, "]") {
		return header[1 : len(header)-1]
	}
	return header
}
