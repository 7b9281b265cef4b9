package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// heartbeat is a script that notes the time in a file until it is killed.
func heartbeat(t *testing.T) (file, script string) {
	file = filepath.Join(t.TempDir(), "heartbeat")
	return file, `while :; do date +%s.%N > ` + file + `.new && mv ` + file + `.new ` + file + `; sleep 0.01; done`
}

func lastBeat(t *testing.T, file string) time.Time {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var sec, nsec int64
	if _, err := fmt.Sscanf(string(data), "%d.%d", &sec, &nsec); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return time.Unix(sec, nsec)
}

// A command that does not end is sent TERM, then KILL, and no process of it works
// on when the lease has ended.
func TestRunEndsAStuckCommandBeforeTheLease(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file, beat := heartbeat(t)
	r := startRun(t, s, "k", "--lease", "5s", "--", "sh", "-c",
		`trap 'echo got TERM' TERM; echo $TICKETING_DEADLINE; (trap '' TERM; `+beat+`) & echo child=$!; while :; do sleep 0.05; done`)
	child := r.announced("child")
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d, want %d", code, runLost)
	}
	r.stdout.await("got TERM")
	r.stderr.await("was about to end")
	wantGone(t, "a grandchild", child)
	wantFree(t, s, "k")
	plan, _ := planEnd(5*time.Second, 0, false)
	deadline, err := time.Parse(time.RFC3339, strings.Split(r.stdout.String(), "\n")[0])
	if err != nil {
		t.Fatal(err)
	}
	if end := deadline.Add(plan.term); lastBeat(t, file).After(end) {
		t.Errorf("it worked until %s, the lease ended at %s", lastBeat(t, file), end)
	}
}

// A command that ends itself after TERM was ended all the same: its work may be half
// done.
func TestRunSaysLostAlsoWhenTermWasEnough(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := runResult(t, s, "k", "--lease", "2s", "--", "sh", "-c", `trap 'exit 0' TERM; while :; do sleep 0.02; done`)
	if r.code != runLost {
		t.Errorf("%v", r)
	}
	wantFree(t, s, "k")
}

// Processes in groups of their own, as timeout and job control make them, and ones
// that were stopped, are ended too.
func TestRunEndsWhatLeftTheProcessGroup(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--lease", "5s", "--", "sh", "-c",
		`timeout -s INT 100 sh -c 'trap "" TERM INT; echo a=$$; while :; do sleep 0.05; done' &
		 sh -c 'echo b=$$; kill -STOP $$; echo never' &
		 sh -c 'sh -c "echo c=\$\$; while :; do sleep 0.05; done" &'
		 sleep 100`)
	pids := []int{r.announced("a"), r.announced("b"), r.announced("c")}
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d", code)
	}
	wantGone(t, "after the lease", pids...)
	wantFree(t, s, "k")
}

// The lock is given back when nothing of the command is left.
func TestRunKillsWhatTheCommandLeavesBehind(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--", "sh", "-c",
		`(trap '' TERM HUP; echo a=`+"`sh -c 'echo $PPID'`"+`; while :; do sleep 0.05; done) &
		 timeout 100 sh -c 'echo b=$$; while :; do sleep 0.05; done' &
		 sleep 0.5; exit 3`)
	pids := []int{r.announced("a"), r.announced("b")}
	if code := r.wait(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	wantGone(t, "after the command", pids...)
	wantFree(t, s, "k")
}

// Documented: a session of its own is how a command starts what is to live on.
func TestASessionOfItsOwnLivesOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--", "sh", "-c", `setsid sh -c 'echo daemon=$$; exec sleep 100' & sleep 0.5`)
	pid := r.announced("daemon")
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !lives(pid) {
		t.Error("the daemon was ended")
	}
	unix.Kill(pid, unix.SIGKILL)
	wantFree(t, s, "k")
}

// relatives is a command with a child in its group and one in another, which announce
// themselves.
const relatives = `echo command=$$
	sh -c 'echo child=$$; while :; do sleep 0.05; done' &
	timeout 100 sh -c 'echo other=$$; while :; do sleep 0.05; done' &
	while :; do sleep 0.05; done`

// kill -9 of run kills the command and all that it started. The lock stays held: its
// lease frees it.
func TestTheCommandDiesWithRun(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--", "sh", "-c", relatives)
	pids := []int{r.guard(), r.announced("command"), r.announced("child"), r.announced("other")}
	r.signal(unix.SIGKILL)
	r.wait()
	eventually(t, "the end of the command", func() bool { return !slices.ContainsFunc(pids, lives) })
	wantHeld(t, s, "k")
}

// Should the guard be killed, run kills what it guarded and gives the lock back.
func TestTheCommandDiesWithTheGuard(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--", "sh", "-c", relatives)
	pids := []int{r.announced("command"), r.announced("child"), r.announced("other")}
	unix.Kill(r.guard(), unix.SIGKILL)
	if code := r.wait(); code != 137 {
		t.Errorf("exit code %d", code)
	}
	wantGone(t, "without the guard", pids...)
	wantFree(t, s, "k")
}

// When both are killed at once the parent-death signal still ends the command
// itself.
func TestTheCommandDiesWithRunAndGuard(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--", "sleep", "100")
	guard := r.guard()
	command := childOf(t, guard)
	unix.Kill(guard, unix.SIGSTOP) // so that it can't see run's end
	r.signal(unix.SIGKILL)
	r.wait()
	unix.Kill(guard, unix.SIGKILL)
	eventually(t, "the end of the command", func() bool { return !lives(command) })
}

// A run that is stopped can't end its command; the guard does.
func TestAStoppedRunDoesNotOutliveItsLease(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := startRun(t, s, "k", "--lease", "5s", "--", "sh", "-c", relatives)
	pids := []int{r.announced("command"), r.announced("child"), r.announced("other")}
	r.signal(unix.SIGSTOP)
	takeToken(t, s.env(), "k", "--wait", "60s") // when the lease has ended
	eventually(t, "the end of the command", func() bool { return !slices.ContainsFunc(pids, lives) })
	r.signal(unix.SIGCONT)
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d", code)
	}
}

// What has become another user's can't be killed. Then the lock is not given back
// while it works on, and the user hears of it.
func TestRunDoesNotGiveTheLockBackWhenAProcessCantBeKilled(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make a program that becomes root")
	}
	s := startServer(t)
	becomesRoot := copyOfThis(t, 0o4755)
	const nobody = 65534
	r := &startedRun{t: t, cmd: exec.Command(copyOfThis(t, 0o755), "run", "k", "--lease", "3s", "--", becomesRoot)}
	r.cmd.Env = append(os.Environ(), s.env(asProgram+"=1", asRoot+"=1")...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	r.stdout, r.stderr = readLines(t, &r.cmd.Stdout), readLines(t, &r.cmd.Stderr)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := r.announced("root")
	t.Cleanup(func() { unix.Kill(pid, unix.SIGKILL) })
	if code := r.wait(); code != runLost {
		t.Errorf("exit code %d", code)
	}
	r.stderr.await(fmt.Sprintf("processes [%d] could not be killed", pid))
	takeToken(t, s.env(), "k", "--wait", "60s")
}

// copyOfThis copies the test binary to where every user may run it.
func copyOfThis(t *testing.T, mode uint32) (file string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "ticketing")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, "ticketing")
	// Not written by this process: a child of another test might have it open for
	// writing just when it is to be executed.
	if out, err := exec.Command("cp", thisTest, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := unix.Chmod(file, mode); err != nil { // os.Chmod has its own bits
		t.Fatal(err)
	}
	return file
}

// asRoot makes the test binary, when it runs as its owner, be a command that nobody
// but root can kill.
const asRoot = "TICKETING_TEST_AS_ROOT"

func init() {
	if os.Getenv(asRoot) == "" || os.Geteuid() == os.Getuid() {
		return
	}
	if err := unix.Setresuid(0, 0, 0); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("root=%d\n", os.Getpid())
	time.Sleep(patience)
	os.Exit(0)
}
