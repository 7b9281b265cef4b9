package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Without credentials the server is for its own machine, whatever else is allowed.
func TestWhereItListens(t *testing.T) {
	for _, test := range []struct {
		addr    string
		refused bool
	}{
		{"127.0.0.1:0", false},
		{"localhost:0", false},
		{"127.8.9.1:0", false},
		{":0", true},
		{"0.0.0.0:0", true},
		{"[::]:0", true},
		{"192.0.2.1:0", true},
		{"node.example:0", true},
	} {
		ln, err := Listen(t.Context(), test.addr)
		if err == nil {
			ln.Close()
		}
		if refused := errors.Is(err, ErrExposed); refused != test.refused || err != nil && !refused {
			t.Errorf("%s: %v", test.addr, err)
		}
	}
	if _, err := Listen(t.Context(), "no port"); err == nil {
		t.Error("an address without a port was taken")
	}
}

// serve serves on a free port, until the test ends.
func serve(t *testing.T, s *Server) (addr string, served <-chan error) {
	t.Helper()
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	return ln.Addr().String(), ended
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestItServesUntilItIsShutDown(t *testing.T) {
	s := measured(nil)
	addr, served := serve(t, s)
	if status, body := get(t, "http://"+addr+"/metrics"); status != 200 || body != "ticketing_ready 1\n" {
		t.Errorf("answered %d %q", status, body)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if nc, err := net.Dial("tcp", addr); err == nil {
		nc.Close()
		t.Error("it still listens")
	}
}

// A request that does not end holds a shutdown up no longer than its context.
func TestAShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	begun, cut := make(chan struct{}), make(chan struct{})
	s := New(Config{Ready: func() error { return nil }, Metrics: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(cut)
	})})
	addr, served := serve(t, s)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	<-cut
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// What a client sends is bounded.
func TestABigHeaderIsRefused(t *testing.T) {
	s := measured(nil)
	addr, served := serve(t, s)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// The server may answer, and close, before all of it is sent.
	io.WriteString(nc, "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 2*headerMax)+"\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %d", answer.StatusCode)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	<-served
}

// Every wait for a client has an end.
func TestWaitsAreBounded(t *testing.T) {
	h := &measured(nil).http
	if h.ReadHeaderTimeout <= 0 || h.ReadTimeout <= 0 || h.WriteTimeout <= 0 || h.IdleTimeout <= 0 || h.MaxHeaderBytes <= 0 {
		t.Errorf("something is unbounded: %+v %v %v %v %d", h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout, h.IdleTimeout, h.MaxHeaderBytes)
	}
}
