package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What traces are sent to in telemetry.sh, in place of a collector of OpenTelemetry: it
// takes them and does nothing with them, so that the figure is what sending costs.

const (
	collectorHeaderTime = 5 * time.Second // for the head of a request
	collectorEndTime    = 5 * time.Second // for the requests that are on their way at the end
)

// taken counts what a collector took: requests, or connections where it hangs.
type taken struct{ requests, bytes atomic.Int64 }

// serveCollector takes traces until TERM or INT, and then prints what it took. One that
// hangs takes whatever is sent and never answers.
func serveCollector(addr string, hangs bool, out io.Writer) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	var t taken
	if hangs {
		err = t.hang(ctx, listener)
		fmt.Fprintf(out, "took %d connections, %d bytes, and answered none\n", t.requests.Load(), t.bytes.Load())
	} else {
		err = t.serve(ctx, listener)
		fmt.Fprintf(out, "took %d requests, %d bytes\n", t.requests.Load(), t.bytes.Load())
	}
	return err
}

// ServeHTTP takes the traces of one request: OTLP over HTTP. An empty answer is one that
// took everything.
func (t *taken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return // the sender is gone
	}
	t.requests.Add(1)
	t.bytes.Add(n)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// serve answers until the context ends.
func (t *taken) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/traces", t)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: collectorHeaderTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), collectorEndTime)
	defer cancel()
	err := server.Shutdown(ending)
	<-ended
	return err
}

// hang reads what comes until the context ends.
func (t *taken) hang(ctx context.Context, listener net.Listener) error {
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { listener.Close() })
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			return err
		}
		t.requests.Add(1)
		context.AfterFunc(ctx, func() { conn.Close() })
		reading.Go(func() {
			defer conn.Close()
			n, _ := io.Copy(io.Discard, conn) // ends with the sender, or at the end
			t.bytes.Add(n)
		})
	}
}
