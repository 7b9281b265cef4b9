package link

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Somebody who is refused comes again and again: each reason is logged once in ten
// seconds, with how often it came meanwhile, and what a stranger wrote is quoted.
func TestRefusedStreamsDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, log := newNetwork(), &logBuffer{}
		n1, gone := n.node(t, "n1"), n.node(t, "gone")
		n2 := n.node(t, "n2", func(c *Config) {
			c.Logger, c.Refuse = log.logger(), func(id string) bool { return id == "gone" }
		})
		n2.Raft()
		for range 20 {
			refusedWith(t, gone, Raft, "n2:1", "n2", ErrRemoved)
			refusedWith(t, n1, Control, "n2:1", "n2", ErrRefused)
		}
		synctest.Wait()
		for _, text := range []string{"node gone was removed", "no stream of its kind"} {
			if got := strings.Count(log.String(), text); got != 1 {
				t.Errorf("%q is logged %d times:\n%s", text, got, log)
			}
		}
		time.Sleep(refusedEvery)
		refusedWith(t, gone, Raft, "n2:1", "n2", ErrRemoved)
		synctest.Wait()
		if !strings.Contains(log.String(), "alike_before=19") {
			t.Errorf("the others are not counted:\n%s", log)
		}
	})
}

func TestALookFromOutsideIsNoWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, log := newNetwork(), &logBuffer{}
		n.node(t, "n2", func(c *Config) { c.Logger = log.logger() })
		c := n.stranger(t, "n2:1")
		readHello(c)
		c.Close()
		synctest.Wait()
		if strings.Contains(log.String(), "WARN") {
			t.Errorf("logged:\n%s", log)
		}
		c = n.stranger(t, "n2:1")
		readHello(c)
		io.WriteString(c, "GET /")
		synctest.Wait()
		if !strings.Contains(log.String(), "WARN") {
			t.Errorf("logged:\n%s", log)
		}
	})
}
