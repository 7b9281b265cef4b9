//go:build linux

package node_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveUnder starts the test binary as a server for 8192 connections under a limit
// of open files, as nobody if this is root, and returns its log once it serves.
func serveUnder(t *testing.T, soft, hard int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ticketing-limit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755) // nobody must reach the program
	program := filepath.Join(dir, "server")
	copyProgram(t, program)
	cmd := exec.Command("bash", "-c", fmt.Sprintf(`ulimit -Sn %d; ulimit -Hn %d; exec "$0"`, soft, hard), program)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), serveEnv+"=1", logEnv+"=1", "LISTEN=127.0.0.1:0", "MAX_CONNECTIONS=8192")
	if os.Getuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	log := &logBuffer{}
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	for range 100 {
		if strings.Contains(log.String(), "msg=serving") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return log.String()
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, from); err != nil {
		t.Fatal(err)
	}
}

func TestTheLimitOfOpenFilesIsRaisedToWhatConnectionsNeed(t *testing.T) {
	log := serveUnder(t, 1000, 10_000)
	if !strings.Contains(log, "msg=serving") || strings.Contains(log, "limit of open files is too low") {
		t.Errorf("log:\n%s", log)
	}
}

func TestALimitOfOpenFilesThatIsTooLowIsSaid(t *testing.T) {
	log := serveUnder(t, 1000, 2000)
	if !strings.Contains(log, "limit of open files is too low") || !strings.Contains(log, "need=8320") {
		t.Errorf("log:\n%s", log)
	}
}
