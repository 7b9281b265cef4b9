package replica

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger passes on what raft and its stores log, for debugging: they say three times a
// second that a member is not there. What an operator needs to know, the node says itself.
type raftLogger struct {
	hclog.Logger // for what is not overridden
	log          *slog.Logger
	name         string
	implied      []any
}

func newRaftLogger(l *slog.Logger) *raftLogger {
	return &raftLogger{Logger: hclog.NewNullLogger(), log: l}
}

func (l *raftLogger) put(level slog.Level, msg string, args []any) {
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	all := append(append([]any{}, l.implied...), args...)
	for i, a := range all {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			all[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	l.log.Log(ctx, level, "raft: "+msg, all...)
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	if level != hclog.Trace {
		l.put(slog.LevelDebug, msg, args)
	}
}

func (l *raftLogger) Trace(string, ...any)          {}
func (l *raftLogger) Debug(msg string, args ...any) { l.put(slog.LevelDebug, msg, args) }
func (l *raftLogger) Info(msg string, args ...any)  { l.put(slog.LevelDebug, msg, args) }
func (l *raftLogger) Warn(msg string, args ...any)  { l.put(slog.LevelDebug, msg, args) }
func (l *raftLogger) Error(msg string, args ...any) { l.put(slog.LevelDebug, msg, args) }
func (l *raftLogger) IsDebug() bool                 { return l.log.Enabled(context.Background(), slog.LevelDebug) }
func (l *raftLogger) IsWarn() bool                  { return l.IsDebug() }
func (l *raftLogger) IsError() bool                 { return l.IsDebug() }
func (l *raftLogger) ImpliedArgs() []any            { return l.implied }
func (l *raftLogger) Name() string                  { return l.name }

func (l *raftLogger) With(args ...any) hclog.Logger {
	c := *l
	c.implied = append(append([]any{}, l.implied...), args...)
	return &c
}

func (l *raftLogger) Named(name string) hclog.Logger      { return l.ResetNamed(name) }
func (l *raftLogger) ResetNamed(name string) hclog.Logger { c := *l; c.name = name; return &c }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}
