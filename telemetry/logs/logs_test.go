package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/config"
)

// lines are what a logger wrote.
func lines(b *bytes.Buffer) []string {
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// hostile are keys, and words of a peer, that would be more than one line, or another
// one, in a log that let them.
var hostile = []string{
	"a\ntime=2026-01-01T00:00:00Z level=ERROR msg=forged",
	"a\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}",
	`a" level=ERROR msg="forged`,
	`a","level":"ERROR","msg":"forged`,
	"a\u2028level=ERROR\u2029msg=forged",
	"a\u0085level=ERROR",
	"right\u202eot\u200ftfel\u2066x\u2069",
	"\x1b[2J\x1b]0;title\x07\x7f\x9b31m\x00",
	"bad utf-8 \xff\xfe",
	"a\U000e0001tag",
	"plain=not\tplain",
	"\x7f",
}

func TestAKeyCantForgeALine(t *testing.T) {
	for _, format := range []string{config.LogText, config.LogJSON} {
		for _, key := range hostile {
			var out bytes.Buffer
			log := New(&out, format, slog.LevelInfo)
			log.Info("released", "key", key, "error", fmt.Errorf("of %s", key), "of", slog.GroupValue(slog.String("key", key)))
			line := strings.TrimSuffix(out.String(), "\n")
			for _, r := range line {
				if !unicode.IsPrint(r) {
					t.Errorf("%s of %q: the line has %U:\n%q", format, key, r, line)
				}
			}
			if format == config.LogText {
				if n := strings.Count(line, "level="); strings.Count(unquoted(t, line), "level=") != 1 {
					t.Errorf("%q: %d levels in\n%s", key, n, line)
				}
				continue
			}
			var got struct{ Level, Msg, Key, Error string }
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Errorf("%q: %v in %s", key, err, line)
			}
			want := strings.ToValidUTF8(key, "\ufffd")
			if got.Level != "INFO" || got.Msg != "released" || strings.ReplaceAll(got.Key, "\ufffd\ufffd", "\ufffd") != want {
				t.Errorf("%q is read as %+v", key, got)
			}
		}
	}
}

// unquoted returns a line without what is in quotes.
func unquoted(t *testing.T, line string) string {
	t.Helper()
	var out strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch {
		case quoted && line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case !quoted:
			out.WriteByte(line[i])
		}
	}
	if quoted {
		t.Errorf("a quote is open at the end of %s", line)
	}
	return out.String()
}

func FuzzALineIsOneLine(f *testing.F) {
	for _, key := range hostile {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, format := range []string{config.LogText, config.LogJSON} {
			var out bytes.Buffer
			New(&out, format, slog.LevelInfo).Info("released", "key", key)
			line, ok := strings.CutSuffix(out.String(), "\n")
			if !ok || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s of %q is %q", format, key, out.String())
			}
			if format == config.LogJSON && !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %s", line)
			}
		}
	})
}

func TestALineNamesTheTraceItBelongsTo(t *testing.T) {
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0xab, 15: 1}, SpanID: trace.SpanID{7: 2}})
	ctx := trace.ContextWithSpanContext(context.Background(), sc)
	var out bytes.Buffer
	log := New(&out, config.LogText, slog.LevelInfo).With("node", "n1")
	log.InfoContext(ctx, "with")
	log.Info("without")
	got := lines(&out)
	if !strings.HasSuffix(got[0], "msg=with node=n1 trace_id=ab000000000000000000000000000001") || strings.Contains(got[1], "trace_id") {
		t.Errorf("logged\n%s", &out)
	}
}

type broken struct{}

func (*broken) String() string { panic("no") }

func TestJSONHasAddressesAndErrorsAsText(t *testing.T) {
	var out bytes.Buffer
	log := New(&out, config.LogJSON, slog.LevelInfo)
	log.Info("refused", "remote", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5225}, "error", errors.New("why"), "took", time.Second,
		"level_now", slog.LevelWarn, "broken", (*broken)(nil))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"remote": "192.0.2.1:5225", "error": "why", "took": 1e9, "level_now": "WARN", "broken": "!PANIC: no"} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

func TestTheLevelCanBeChanged(t *testing.T) {
	var out bytes.Buffer
	var level slog.LevelVar
	log := New(&out, config.LogText, &level)
	log.Debug("unseen")
	level.Set(slog.LevelDebug)
	log.Debug("seen")
	if got := lines(&out); len(got) != 1 || !strings.Contains(got[0], "level=DEBUG msg=seen") {
		t.Errorf("logged\n%s", &out)
	}
}
