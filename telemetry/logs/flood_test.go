package logs

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
)

// buffer may be read while it is written.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// count returns how many lines have all of the words.
func (b *buffer) count(words ...string) (n int) {
	for line := range strings.Lines(b.String()) {
		has := true
		for _, w := range words {
			has = has && strings.Contains(line, w)
		}
		if has {
			n++
		}
	}
	return n
}

func inFlood(t *testing.T, f func(t *testing.T, out *buffer, log *slog.Logger)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		f(t, &out, New(&out, config.LogText, slog.LevelDebug))
	})
}

func TestOfAFloodTenLinesASecondAreWrittenAndTheRestIsCounted(t *testing.T) {
	inFlood(t, func(t *testing.T, out *buffer, log *slog.Logger) {
		for i := range 3000 { // in 3 s
			log.With("i", i).Warn("refused")
			time.Sleep(time.Millisecond)
		}
		if n := out.count("msg=refused"); n != 30 {
			t.Errorf("%d lines, want 30:\n%s", n, out)
		}
		if out.count("msg=refused", "left_out=990") != 2 || out.count("left_out") != 2 {
			t.Errorf("the next line does not tell what was left out:\n%s", out)
		}
		time.Sleep(time.Minute)
		if out.count("level=WARN", `msg="lines were left out" like=refused left_out=990`) != 1 || out.count("left_out") != 3 {
			t.Errorf("the flood's end is not told once:\n%s", out)
		}
		log.Warn("refused")
		if out.count("msg=refused") != 31 || out.count("left_out") != 3 {
			t.Errorf("after the flood a line is not as any other:\n%s", out)
		}
	})
}

func TestLinesThatComeSlowlyAreAllWritten(t *testing.T) {
	inFlood(t, func(t *testing.T, out *buffer, log *slog.Logger) {
		for range 100 {
			log.Info("leads")
			time.Sleep(100 * time.Millisecond)
		}
		if out.count("msg=leads") != 100 || out.count("left_out") != 0 {
			t.Errorf("not all were written:\n%s", out)
		}
	})
}

func TestAFloodOfOneTextHidesNoOther(t *testing.T) {
	inFlood(t, func(t *testing.T, out *buffer, log *slog.Logger) {
		for range 1000 {
			log.Warn("refused")
		}
		log.Warn("disk full")
		log.Info("refused") // at another level
		if out.count(`msg="disk full"`) != 1 || out.count("level=INFO msg=refused") != 1 {
			t.Errorf("a line is missing:\n%s", out)
		}
	})
}

func TestErrorsAndDebuggingAreNeverLeftOut(t *testing.T) {
	inFlood(t, func(t *testing.T, out *buffer, log *slog.Logger) {
		for range 1000 {
			log.Error("broken")
			log.Debug("closed")
		}
		if out.count("msg=broken") != 1000 || out.count("msg=closed") != 1000 {
			t.Errorf("%d errors and %d for debugging, want 1000", out.count("msg=broken"), out.count("msg=closed"))
		}
	})
}

func TestAFloodOfDifferentTextsTakesNoMoreMemoryAndTenLinesASecond(t *testing.T) {
	inFlood(t, func(t *testing.T, out *buffer, log *slog.Logger) {
		texts := func(from int) {
			for i := range 2000 {
				log.Info(fmt.Sprint("text ", from+i))
			}
		}
		texts(0)
		if n := out.count("text"); n != floodTexts+floodLines {
			t.Errorf("%d lines, want %d", n, floodTexts+floodLines)
		}
		f := log.Handler().(flood)
		if len(f.texts) > floodTexts+1 {
			t.Errorf("%d texts are remembered", len(f.texts))
		}
		time.Sleep(time.Minute)
		if out.count("left_out=1734") != 1 {
			t.Errorf("the flood's end is not told:\n%s", out)
		}
		texts(10000) // the old ones are forgotten
		if out.count(`"text 10200"`) != 1 || len(f.texts) > floodTexts+1 {
			t.Errorf("a new text is not written, or %d are remembered", len(f.texts))
		}
		time.Sleep(time.Minute)
	})
}

func TestAFloodFromManyIsCountedToTheLastLine(t *testing.T) {
	inFlood(t, func(t *testing.T, out *buffer, log *slog.Logger) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 500 {
					log.Info("come")
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		told := 0
		for line := range strings.Lines(out.String()) {
			var n int
			if _, after, ok := strings.Cut(line, "left_out="); ok {
				fmt.Sscan(after, &n)
				told += n
			}
		}
		if written := out.count("msg=come"); written+told != 20*500 {
			t.Errorf("%d lines were written and %d told, of %d", written, told, 20*500)
		}
	})
}

func TestAGatesLogSaysHowItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		g := NewGates(New(&out, config.LogText, slog.LevelInfo))
		g.Changed("waiters", true)
		synctest.Wait()
		if out.count("level=WARN", "has closed", "gate=waiters changes=1") != 1 {
			t.Errorf("logged\n%s", &out)
		}
		for range 500 { // it flaps
			g.Changed("waiters", false)
			g.Changed("waiters", true)
		}
		g.Changed("waiters", false)
		time.Sleep(time.Minute)
		if out.count("level=INFO", "is open again", "gate=waiters changes=1001") != 1 || out.count("gate=") != 2 {
			t.Errorf("logged\n%s", &out)
		}
		g.Changed("keys", true)
		g.Close()
		if out.count("has closed", "gate=keys") != 1 {
			t.Errorf("the last change is lost:\n%s", &out)
		}
	})
}

// stuck is a log that takes nothing.
type stuck struct{ free chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.free
	return len(p), nil
}

func TestAGateDoesNotWaitForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := stuck{make(chan struct{})}
		g := NewGates(New(log, config.LogText, slog.LevelInfo))
		began := time.Now()
		for i := range 1000 {
			g.Changed("acquires", i%2 == 0)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
		close(log.free)
		g.Close()
	})
}
