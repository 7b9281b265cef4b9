package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ticketing-io/ticketing/client"
)

// Each of the client's errors has its exit code; of an error of several kinds, the
// one that the user must know counts.
func TestExitCodeOfEveryError(t *testing.T) {
	for _, c := range []struct {
		errs      []error
		exit, run int
	}{
		{[]error{client.ErrTimeout}, 3, 120},
		{[]error{client.ErrBusy}, 4, 121},
		{[]error{client.ErrIndeterminate}, 5, 122},
		{[]error{client.ErrNotCurrent}, 6, 123},
		{[]error{client.ErrUnsupportedDuration}, 2, 124},
		{[]error{client.ErrInvalidKey}, 2, 124},
		{[]error{client.ErrConfig}, 2, 124},
		{[]error{client.ErrInsufficientLease}, 1, 124},
		{[]error{client.ErrAuthRefused}, 1, 124},
		{[]error{client.ErrNotConnected}, 1, 124},
		{[]error{client.ErrClientCapacity}, 1, 124},
		{[]error{client.ErrCancelled}, 1, 124},
		{[]error{client.ErrClosed}, 1, 124},
		{[]error{client.ErrProtocol}, 1, 124},
		{[]error{errors.New("something else")}, 1, 124},
		{[]error{client.ErrTimeout, client.ErrNotConnected}, 1, 124},
		{[]error{client.ErrTimeout, client.ErrAuthRefused}, 1, 124},
		{[]error{client.ErrTimeout, client.ErrIndeterminate}, 5, 122},
		{[]error{client.ErrProtocol, client.ErrIndeterminate}, 5, 122},
		{[]error{client.ErrCancelled, client.ErrIndeterminate}, 5, 122},
	} {
		err := fmt.Errorf("acquire: %w", errors.Join(c.errs...))
		ctx := context.Background()
		if f := acquireFault(ctx, err); f.exit != c.exit {
			t.Errorf("acquire: %v: exit code %d, want %d", c.errs, f.exit, c.exit)
		}
		if f := releaseFault(ctx, err); f.exit != c.exit {
			t.Errorf("release: %v: exit code %d, want %d", c.errs, f.exit, c.exit)
		}
		if f := runFault(ctx, err); f.exit != c.run {
			t.Errorf("run: %v: exit code %d, want %d", c.errs, f.exit, c.run)
		}
	}
}

// A signal that certainly prevented everything gives the code that a shell gives;
// where the lock may have been taken, that is what the caller must know.
func TestExitCodeOfASignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(interrupted{syscall.SIGTERM})
	if f := acquireFault(ctx, client.ErrCancelled); f.exit != 143 {
		t.Errorf("cancelled by TERM: exit code %d, want 143", f.exit)
	}
	if f := runFault(ctx, client.ErrIndeterminate); f.exit != 122 {
		t.Errorf("unknown after TERM: exit code %d, want 122", f.exit)
	}
}

// An error that the client gains must gain its row here.
func TestEveryClientErrorHasAnOutcome(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../client/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if v, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") {
			n++
		}
		return true
	})
	if n != len(outcomes) {
		t.Errorf("the client has %d errors, the table %d rows", n, len(outcomes))
	}
	seen := map[error]bool{}
	kinds := map[string]bool{}
	for _, o := range outcomes {
		if seen[o.err] || kinds[o.kind] {
			t.Errorf("%s stands twice in the table", o.kind)
		}
		seen[o.err], kinds[o.kind] = true, true
		if o.acquire.means == "" || o.acquire.todo == "" {
			t.Errorf("%s says nothing for people", o.kind)
		}
	}
}

// Every code of the tables in help and documents is used, and every used code
// stands there.
func TestExitCodeTables(t *testing.T) {
	numbers := func(codes []exitCode) map[int]bool {
		m := map[int]bool{}
		for _, c := range codes {
			if n, err := strconv.Atoi(c.code); err == nil {
				m[n] = true
			}
		}
		return m
	}
	plain, ofRun := numbers(exitCodes), numbers(runExitCodes)
	for _, o := range append(outcomes, unknownError) {
		if !plain[o.exit] {
			t.Errorf("%s: exit code %d is in no table", o.kind, o.exit)
		}
		if !ofRun[o.run] {
			t.Errorf("%s: exit code %d of run is in no table", o.kind, o.run)
		}
	}
	for n := range ofRun {
		if n < 120 || n > 125 {
			t.Errorf("run's code %d is outside 120 to 125", n)
		}
	}
	if !ofRun[runNotStarted] || len(ofRun) != 6 {
		t.Errorf("run has codes %v, want 120 to 125", ofRun)
	}
}

// Errors say what happened, what it means, what to do.
func TestErrorsForPeople(t *testing.T) {
	var b strings.Builder
	for _, o := range outcomes {
		err := fmt.Errorf("acquire %q: %w", "order-42", o.err)
		acquireFault(context.Background(), err).print(&b, "ticketing acquire")
		if o.release != (advice{}) {
			releaseFault(context.Background(), fmt.Errorf("release %q: %w", "order-42", o.err)).print(&b, "ticketing release")
		}
		b.WriteString("\n")
	}
	golden(t, "errors", b.String())
}
