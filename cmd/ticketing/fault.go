package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/client"
)

// fault is an error as its user reads it: what happened, what it means, what to
// do. It ends the program with its exit code.
type fault struct {
	exit int
	err  error
	advice
}

// Error returns what happened.
func (f *fault) Error() string { return f.err.Error() }

// Unwrap returns the error behind the fault.
func (f *fault) Unwrap() error { return f.err }

func (f *fault) print(w io.Writer, command string) {
	fmt.Fprintf(w, "%s: %s\n", command, indented(printable(f.err.Error())))
	for _, line := range []string{f.means, f.todo} {
		if line != "" {
			fmt.Fprintf(w, "  %s\n", indented(printable(line)))
		}
	}
}

// printable escapes what a terminal might obey, as in a text that came from a server's
// certificate or a file's name. Line breaks stay: a text may have several lines.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		text = text[size:]
	}
	return b.String()
}

// indented sets the further lines of a text of several in.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// ending is an exit code without a message, since all is said elsewhere. It may
// have a warning.
type ending struct {
	code    int
	warning *fault
}

// Error tells the code.
func (e *ending) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// usageFault refuses a command line. Nothing has been done.
func usageFault(cmd *cobra.Command, err error) *fault {
	exit := exitUsage
	if cmd.Name() == "run" {
		exit = runError // 2 is the command's own
	}
	return &fault{exit, err, advice{"Nothing was done.", fmt.Sprintf("See %q.", cmd.CommandPath()+" --help")}}
}

// acquireFault tells an error of an acquire under ctx.
func acquireFault(ctx context.Context, err error) *fault {
	o := outcomeOf(err)
	return &fault{exitOr(ctx, err, o.exit), err, o.acquire}
}

// runFault tells an error of the acquire under ctx before a command is run.
func runFault(ctx context.Context, err error) *fault {
	o := outcomeOf(err)
	return &fault{exitOr(ctx, err, o.run), err, o.acquire}
}

// releaseFault tells an error of a release under ctx.
func releaseFault(ctx context.Context, err error) *fault {
	o := outcomeOf(err)
	if errors.Is(err, client.ErrNotCurrent) && errors.Is(err, client.ErrIndeterminate) {
		o.release = advice{"The lock is no longer held. An attempt of this release whose answer was lost may have given it back; if not, it was released before or its lease had ended.", "Nothing is left to release."}
	}
	return &fault{exitOr(ctx, err, o.exit), err, o.release}
}

// exitOr returns the code of the signal that ended ctx when that is why nothing
// was done, else code.
func exitOr(ctx context.Context, err error, code int) int {
	var i interrupted
	if errors.Is(err, client.ErrCancelled) && errors.As(context.Cause(ctx), &i) {
		return signalBase + int(i.sig)
	}
	return code
}
