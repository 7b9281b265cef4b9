package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the tests here try: to work on when the lock may be another's.

// asChain makes the test binary a chain: each of its processes starts the next one
// and ends, so that a process that is seen is gone when it is killed. It notes the
// time in a file. Arguments: file, "stay" or "end" (what the command itself does),
// "same" or "own" (its process group).
const asChain = "as-chain"

func init() {
	if len(os.Args) == 5 && os.Args[1] == asChain {
		chain(os.Args[2], os.Args[3] == "stay", os.Args[4] == "own")
	}
}

// chainTime ends a chain that nobody ended.
const chainTime = 15 // s

// Raw system calls only: the first fork leaves the runtime's threads behind.
//
//go:norace
func chain(file string, stay, own bool) {
	fd, err := unix.Open(file, unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	sigIgnore := struct{ handler, flags, restorer, mask uintptr }{handler: 1}
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTERM), uintptr(unsafe.Pointer(&sigIgnore)), 0, 8, 0, 0)
	var start, now unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&start)), 0)
	if pid := fork(); pid != 0 {
		if stay {
			time.Sleep(chainTime * time.Second)
		}
		time.Sleep(300 * time.Millisecond)
		os.Exit(0)
	}
	if own {
		unix.RawSyscall(unix.SYS_SETPGID, 0, 0, 0)
	}
	for {
		unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&now)), 0)
		unix.RawSyscall6(unix.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&now)), unsafe.Sizeof(now), 0, 0, 0)
		if now.Sec > start.Sec+chainTime || fork() != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}

//go:norace
func fork() uintptr {
	pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return pid
}

// wantStill checks that nobody writes to a file any more.
func wantStill(t *testing.T, file string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("the job works on")
	}
}

// A job that keeps starting processes, each of which ends at once, is ended like any
// other: when its command ends, before the lease's end, and when run is killed.
func TestAJobThatKeepsForkingDoesNotEscape(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, group := range []string{"same", "own"} {
		t.Run(group+" group, the command ends", func(t *testing.T) {
			t.Parallel()
			key, file := "end-"+group, filepath.Join(t.TempDir(), "chain")
			if r := runResult(t, s, key, "--lease", "20s", "--", thisTest, asChain, file, "end", group); r.code != 0 {
				t.Errorf("%v", r)
			}
			wantStill(t, file)
			wantFree(t, s, key)
		})
		t.Run(group+" group, the lease ends", func(t *testing.T) {
			t.Parallel()
			key, file := "stay-"+group, filepath.Join(t.TempDir(), "chain")
			if r := runResult(t, s, key, "--lease", "10s", "--", thisTest, asChain, file, "stay", group); r.code != runLost || !strings.Contains(r.stderr, "was about to end") {
				t.Errorf("%v", r)
			}
			wantStill(t, file)
			wantFree(t, s, key)
		})
		t.Run(group+" group, run is killed", func(t *testing.T) {
			t.Parallel()
			key, file := "killed-"+group, filepath.Join(t.TempDir(), "chain")
			r := startRun(t, s, key, "--", thisTest, asChain, file, "stay", group)
			eventually(t, "the chain", func() bool { data, _ := os.ReadFile(file); return len(data) > 0 })
			guard := r.guard()
			r.signal(unix.SIGKILL)
			r.wait()
			eventually(t, "the guard's end", func() bool { return !lives(guard) })
			wantStill(t, file)
		})
	}
}

// A shell with job control puts each of its children into a group of its own.
func TestAJobThatKeepsMakingGroupsDoesNotEscape(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file := filepath.Join(t.TempDir(), "beat")
	r := runResult(t, s, "k", "--lease", "3s", "--", "bash", "-c", `set -m; trap '' TERM; while :; do ( date +%s.%N > "$0" ) & done`, file)
	if r.code != runLost || len(r.stderr) > 1000 {
		t.Errorf("%v", r)
	}
	wantStill(t, file)
	wantFree(t, s, "k")
}

// Who kills run by a pattern of its command line leaves the guard, which ends the
// command.
func TestTheGuardsLineIsNotLikeRuns(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "order-42", "--", "sleep", "100")
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.guard()))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"run", "order-42", "sleep"} {
		if strings.Contains(string(line), part) {
			t.Errorf("the guard's line %q has %q", line, part)
		}
	}
}

// A guard that comes to it when the lock may be another's does not start the command.
func TestTheGuardStartsNothingTooLate(t *testing.T) {
	t.Parallel()
	for name, killAt := range map[string]time.Duration{"long ago": 0, "just now": bootTime()} {
		order, err := json.Marshal(guardOrder{KillAt: killAt, Argv: rawStrings([]string{"echo", "ran"})})
		if err != nil {
			t.Fatal(err)
		}
		if code, out := guardAlone(t, order); code != runLost || out != "" {
			t.Errorf("%s: exit code %d, %q", name, code, out)
		}
	}
	if code, out := guardAlone(t, []byte("0\n")); code != runNotStarted || strings.Contains(out, "ran") {
		t.Errorf("no order: exit code %d, %q", code, out)
	}
}

// guardAlone gives an order to a guard whose run goes on.
func guardAlone(t *testing.T, order []byte) (int, string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.Write(append(order, '\n')); err != nil {
		t.Fatal(err)
	}
	cmd := programCommand(nil, guardName, "3")
	cmd.ExtraFiles = []*os.File{r}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return waitExit(t, cmd), out.String()
}

// Without descriptors neither run nor guard can look at processes. The command is
// ended all the same.
func TestRunEndsTheCommandWithoutDescriptors(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file, beat := heartbeat(t)
	r := startRun(t, s, "k", "--lease", "4s", "--", "sh", "-c", `trap '' TERM; echo command=$$; echo $TICKETING_DEADLINE; `+beat)
	command := r.announced("command")
	r.stdout.await("Z")
	for _, pid := range []int{r.cmd.Process.Pid, r.guard()} {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d\n%s", code, r.stderr)
	}
	wantGone(t, "after the lease", command)
	plan, _ := planEnd(4*time.Second, 0, false)
	deadline, err := time.Parse(time.RFC3339, strings.Split(r.stdout.String(), "\n")[1])
	if err != nil {
		t.Fatal(err)
	}
	if end := deadline.Add(plan.term); lastBeat(t, file).After(end) {
		t.Errorf("it worked until %s, the lease ended at %s", lastBeat(t, file), end)
	}
}

// A daemon that keeps starting processes of its own does not keep the lock.
func TestABusyDaemonDoesNotHoldTheLockUp(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file := filepath.Join(t.TempDir(), "chain")
	r := runResult(t, s, "k", "--lease", "60s", "--", "sh", "-c", `setsid "$0" `+asChain+` "$1" end own & sleep 0.5`, thisTest, file)
	if r.code != 0 || r.stderr != "" {
		t.Errorf("%v", r)
	}
	wantFree(t, s, "k")
}

// Its group is the command's own, so that run and guard can kill it whole.
func TestTheCommandLeadsItsGroup(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := runResult(t, s, "k", "--", "sh", "-c", `echo $$; cut -d' ' -f5 /proc/$$/stat; ls -l /proc/$$/fd`)
	fields := strings.Fields(r.stdout)
	if len(fields) < 3 || fields[0] != fields[1] || strings.Contains(r.stdout, "socket:") {
		t.Errorf("%v", r)
	}
}
