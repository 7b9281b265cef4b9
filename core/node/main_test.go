package node_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/node"
)

// serveEnv makes the test binary a server, so that what a server takes can be
// measured apart from its clients.
const serveEnv = "TICKETING_TEST_SERVE"

// logEnv makes that server log to standard error.
const logEnv = "TICKETING_TEST_LOG"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve serves as the environment configures it until standard input ends.
func serve() error {
	cfg, _, err := config.Load(config.Sources{Env: os.LookupEnv})
	if err != nil {
		return err
	}
	var o node.Options
	if os.Getenv(logEnv) != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	n, err := node.Start(context.Background(), cfg, o)
	if err != nil {
		return err
	}
	fmt.Println(n.Addr())
	io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return n.Close(ctx)
}

// startServer starts a server in a process of its own and returns its address and
// process. It ends with the test.
func startServer(tb testing.TB, env ...string) (addr string, p *os.Process) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), serveEnv+"=1", "LISTEN=127.0.0.1:0"), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal("the server did not start:", err)
	}
	return strings.TrimSpace(line), cmd.Process
}
