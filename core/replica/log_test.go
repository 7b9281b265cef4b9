package replica

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// What raft and its stores say is there for who debugs, with all that they say, whatever
// they think of it: they call a member that is away an error, three times a second.
func TestWhatRaftSaysIsThereForDebugging(t *testing.T) {
	say := func(level slog.Level) string {
		var out strings.Builder
		var l hclog.Logger = newRaftLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		l = l.Named("raft").With("peer", "n2")
		l.Error("failed to heartbeat", "error", "refused", "rate", hclog.Fmt("%d/s", 3))
		l.Warn("slow\nlevel=ERROR")
		l.Info("entering follower state")
		l.Debug("votes needed")
		l.Log(hclog.Error, "by level")
		l.Trace("never")
		return out.String()
	}
	if got := say(slog.LevelInfo); got != "" {
		t.Errorf("an operator sees\n%s", got)
	}
	got := say(slog.LevelDebug)
	for _, want := range []string{
		`level=DEBUG msg="raft: failed to heartbeat" peer=n2 error=refused rate=3/s` + "\n",
		`level=DEBUG msg="raft: slow\nlevel=ERROR" peer=n2` + "\n",
		`msg="raft: entering follower state"`, `msg="raft: votes needed"`, `msg="raft: by level"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "never") {
		t.Error("raft's trace is in the log")
	}
}
