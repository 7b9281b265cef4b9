package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// start runs a collector until the test tells it to stop; the function returned does, and
// waits for its end.
func start(t *testing.T, run func(context.Context, net.Listener) error) (addr string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener) }()
	return listener.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestACollectorTakesTracesAndCountsThem(t *testing.T) {
	var got taken
	addr, stop := start(t, got.serve)
	for _, body := range []string{"some spans", "more"} {
		resp, err := http.Post("http://"+addr+"/v1/traces", "application/x-protobuf", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-protobuf" || len(answer) != 0 || err != nil {
			t.Errorf("answered %s, %v, %q (%v)", resp.Status, resp.Header, answer, err)
		}
	}
	stop()
	if got.requests.Load() != 2 || got.bytes.Load() != int64(len("some spansmore")) {
		t.Errorf("counted %d requests, %d bytes", got.requests.Load(), got.bytes.Load())
	}
}

func TestACollectorThatHangsReadsAndNeverAnswers(t *testing.T) {
	var got taken
	addr, stop := start(t, got.hang)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); len(answer) != 0 || err != nil { // its end, once it has read all
		t.Errorf("answered %q (%v)", answer, err)
	}
	stop()
	if got.requests.Load() != 1 || got.bytes.Load() != 4 {
		t.Errorf("counted %d connections, %d bytes", got.requests.Load(), got.bytes.Load())
	}
}

// The end of a collector does not wait for who still sends.
func TestACollectorThatHangsEnds(t *testing.T) {
	var got taken
	addr, stop := start(t, got.hang)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stop()
}
