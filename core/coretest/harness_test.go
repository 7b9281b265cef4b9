package coretest

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer keeps what nodes log.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// logTo has the nodes log into memory.
func logTo(_ *testing.T, c *Config) *logBuffer {
	b := &logBuffer{}
	c.Logger = slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return b
}

// keep writes a failed history whole: a seed does not replay raft's own timers. HISTORIES
// names the folder; without it nothing is kept.
func keep(t *testing.T, r Result, logs *logBuffer) {
	folder := os.Getenv("HISTORIES")
	if folder == "" {
		t.Log("set HISTORIES to a folder to have the history kept")
		return
	}
	var b bytes.Buffer
	for _, what := range r.Accident {
		fmt.Fprintln(&b, what)
	}
	for _, o := range r.Cluster.History.Operations() {
		fmt.Fprintln(&b, o.String())
	}
	for _, tenure := range r.Cluster.Ledger.Tenures() {
		fmt.Fprintf(&b, "%+v\n", tenure)
	}
	b.Write(logs.Bytes())
	path := filepath.Join(folder, fmt.Sprintf("%s.txt", filepath.Base(t.Name())))
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Error(err)
		return
	}
	t.Logf("the history is in %s", path)
}
