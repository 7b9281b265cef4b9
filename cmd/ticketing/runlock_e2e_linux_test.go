package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Two runs compete. One is killed, and the other gets the lock when the first one's
// lease ends, with its full lease before it.
func TestTheOtherRunGetsTheLockWhenOneIsKilled(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const lease = 3 * time.Second
	script := `echo $TICKETING_FENCE $TICKETING_DEADLINE; date +%s.%N; exec sleep 100`
	first := startRun(t, s, "k", "--lease", lease.String(), "--", "sh", "-c", `echo pid=$$; `+script)
	pid := first.announced("pid")
	second := startRun(t, s, "k", "--wait", "60s", "--lease", lease.String(), "--", "sh", "-c", script)
	time.Sleep(200 * time.Millisecond)
	first.signal(unix.SIGKILL)
	first.wait()
	eventually(t, "the end of the first command", func() bool { return !lives(pid) })
	second.stdout.await(".")
	eventually(t, "the second command's words", func() bool { return len(strings.Split(second.stdout.String(), "\n")) == 2 })
	eventually(t, "the first command's words", func() bool { return len(strings.Split(first.stdout.String(), "\n")) == 3 })
	one := strings.Fields(strings.TrimPrefix(first.stdout.String(), "pid="+strconv.Itoa(pid)+"\n"))
	two := strings.Fields(second.stdout.String())
	if number(t, two[0]) <= number(t, one[0]) {
		t.Errorf("tokens %s, then %s", one[0], two[0])
	}
	plan, _ := planEnd(lease, 0, false)
	endOf := func(words []string) time.Time {
		deadline, err := time.Parse(time.RFC3339, words[1])
		if err != nil {
			t.Fatal(err)
		}
		return deadline.Add(plan.term)
	}
	started := startOf(t, two[2])
	// The first lease's end as its holder knew it is never after the server's.
	if started.Before(endOf(one)) {
		t.Errorf("the second command started at %s, the first lease ended at %s", started, endOf(one))
	}
	// Less the second at most that the client can't be sure of (docs/CLIENT.md, section 3).
	if has := endOf(two).Sub(started); has > lease || has < lease-1500*time.Millisecond {
		t.Errorf("the second command has %s of its lease of %s", has, lease)
	}
	second.signal(unix.SIGTERM)
	if code := second.wait(); code != 143 {
		t.Errorf("exit code %d", code)
	}
}

func startOf(t *testing.T, unixTime string) time.Time {
	t.Helper()
	var sec, nsec int64
	if _, err := fmt.Sscanf(unixTime, "%d.%d", &sec, &nsec); err != nil {
		t.Fatal(err)
	}
	return time.Unix(sec, nsec)
}

// A single server that was started again does not know the lock any more: somebody
// else may have held it too, and the caller hears of it.
func TestRunSaysThatTheServerLostTheLock(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	gate := filepath.Join(t.TempDir(), "gate")
	r := startRun(t, s, "k", "--lease", "60s", "--", "sh", "-c", `echo ready; while [ ! -e `+gate+` ]; do sleep 0.05; done`)
	r.stdout.await("ready")
	s.signal(unix.SIGKILL)
	s.wait()
	startServer(t, "--listen", s.addr)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d", code)
	}
	r.stderr.await("lost the lock")
}

// When the release can't be told, the command's exit code stays its own.
func TestRunWarnsWhenTheReleaseFails(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	gate := filepath.Join(t.TempDir(), "gate")
	r := startRun(t, s, "k", "--lease", "60s", "--", "sh", "-c", `echo ready; while [ ! -e `+gate+` ]; do sleep 0.05; done; exit 5`)
	r.stdout.await("ready")
	s.signal(unix.SIGKILL)
	s.wait()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(); code != 5 {
		t.Errorf("exit code %d", code)
	}
	r.stderr.await("may still be held")
}

// Locks can be nested; the end of the outer lease ends everything.
func TestNestedRuns(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "outer", "--lease", "5s", "--", thisTest, "run", "inner", "--lease", "60s", "--", "sh", "-c",
		`echo key=$TICKETING_KEY; trap '' TERM; echo pid=$$; while :; do sleep 0.05; done`)
	r.stdout.await("key=inner")
	pid := r.announced("pid")
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d", code)
	}
	wantGone(t, "after the outer lease", pid)
	wantFree(t, s, "outer")
}
