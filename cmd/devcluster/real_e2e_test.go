//go:build e2e

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/client"
)

// TestTheRealProgramAsTheGuideSays does with real nodes what the guide says: a lock
// is held over a kill of a node, an operator lists the members, a spare joins.
func TestTheRealProgramAsTheGuideSays(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ticketing")
	if out, err := exec.Command("go", "build", "-o", program, "../ticketing").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := begin(t, program, func(r *run) func(context.Context) error {
		return func(ctx context.Context) error { return awaitLeader(ctx, r.folder) }
	})
	r.await("export TICKETING_ADDR=")
	broker, err := client.New(client.Config{Addrs: r.folder.clientAddrs(), TokenFile: r.folder.token()})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ticket, err := broker.Acquire(t.Context(), "order-42", time.Second, 250*time.Second, 0)
	if err != nil {
		t.Fatal(err)
	}

	operator := []string{"--ca", r.folder.ca(), "--cert", r.folder.operatorCert(), "--key", r.folder.operatorKey()}
	members := func(args ...string) string {
		out, err := exec.Command(program, slices.Concat([]string{"members"}, args)...).CombinedOutput()
		if err != nil {
			t.Errorf("members %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if list := members(slices.Concat([]string{"list", "--node", r.folder.node("n2").raft}, operator)...); !strings.Contains(list, "n3") {
		t.Errorf("an operator sees:\n%s", list)
	}
	config := []string{"--config", r.folder.node("n3").config}
	if list := members(slices.Concat([]string{"list"}, config)...); !strings.Contains(list, "n1") {
		t.Errorf("with a node's configuration one sees:\n%s", list)
	}

	if err := syscall.Kill(r.pid("n1"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("n1 has ended (signal: killed)")
	eventually(t, "the lock being held", func() bool {
		_, err := broker.Acquire(t.Context(), "order-42", 0, 5*time.Second, 0)
		if err == nil {
			t.Fatal("the lock was granted twice")
		}
		return errors.Is(err, client.ErrTimeout)
	})
	r.typed("n1")
	r.awaitTimes("n1 runs, pid", 2)

	r.typed("n4")
	spare := r.folder.node("n4")
	members(slices.Concat([]string{"add", "n4", "--raft", spare.raft, "--client", spare.client}, config)...)
	eventually(t, "the spare in the list", func() bool {
		return strings.Contains(members(slices.Concat([]string{"list"}, config)...), "n4")
	})
	if err := ticket.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	r.signals <- os.Interrupt
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.seen(), "panic") {
		t.Error(r.seen())
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}
