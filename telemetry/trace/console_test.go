package trace

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/service"
)

var update = flag.Bool("update", false, "write the golden files")

// On the console a trace is read from above: what became of it, then where its time went.
// A key that would move the cursor does not.
func TestATraceOnTheConsole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		tr := New(Config{Console: &out, Node: "n1", Salt: "golden"})
		at := time.Now()
		acquired(tr, service.AcquireEvent{
			Key: "order\r\u202e42", Owner: 9, Result: service.AcquireGranted, Token: 7, At: at,
			Wait: 5 * time.Second, Lease: 30 * time.Second, Waited: 2003 * time.Millisecond, Proposed: 2 * time.Second, Position: 1,
			Freed: service.End{Token: 6, At: at.Add(2 * time.Second)}, Entry: service.EntryInfo{Index: 12, Term: 2, Commands: 2},
		})
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		const golden = "testdata/console.txt"
		if *update {
			if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("got\n%s\nwant\n%s", &out, want)
		}
	})
}

// A console that does not take what is written holds nobody up: requests go on, and the
// end waits as long as its context says.
func TestAConsoleThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread, hangs := io.Pipe()
		tr := New(Config{Console: hangs, Sample: 1})
		for token := range uint64(2 * pendingMax) {
			acquired(tr, service.AcquireEvent{Key: "k", Result: service.AcquireGranted, Token: token + 1, At: time.Now()})
		}
		if tr.Dropped() == 0 {
			t.Error("nothing was dropped")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Close(ctx); err == nil {
			t.Error("the end says that all was written")
		}
		unread.CloseWithError(errors.New("the reader has gone"))
		<-tr.passed
	})
}
