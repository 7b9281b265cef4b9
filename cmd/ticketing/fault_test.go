package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/ticketing-io/ticketing/client"
)

// An error's text may come from a server's certificate, an argument or a file's name.
// A terminal must not obey it.
func TestErrorsHaveNoTerminalCodes(t *testing.T) {
	for text, want := range map[string]string{
		"plain \"é\" 世界":    "plain \"é\" 世界",
		"two\nlines":        "two\n  lines",
		"\x1b]0;title\a":    `\x1b]0;title\a`,
		"back\rover\x7f":    `back\rover\x7f`,
		"\u009b31m":         `\u009b31m`,
		"\xff\x9b":          `\xff\x9b`,
		"\u202eright\u2066": `\u202eright\u2066`,
	} {
		var out bytes.Buffer
		(&fault{1, errors.New(text), advice{text, text}}).print(&out, "ticketing")
		if want := "ticketing: " + want + "\n  " + want + "\n  " + want + "\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[2J\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range printable(text) {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q has %q", text, r)
			}
		}
	})
}

// When the answer to a first attempt was lost, its release may be why nothing is left:
// nobody else is claimed to have had the lock.
func TestAReleaseThatMayHaveBeenDoneBlamesNobody(t *testing.T) {
	both := fmt.Errorf("release: %w: %w", client.ErrNotCurrent, client.ErrIndeterminate)
	if f := releaseFault(t.Context(), both); f.exit != exitIndeterminate || strings.Contains(f.means, "somebody else") {
		t.Errorf("%+v", f)
	}
	err := ended("k", true, jobEnd{started: true, exit: 7, gone: true}, both)
	var e *ending
	if !errors.As(err, &e) || e.code != 7 || e.warning == nil {
		t.Errorf("%v", err)
	}
	var f *fault
	if err := ended("k", true, jobEnd{started: true, gone: true}, client.ErrNotCurrent); !errors.As(err, &f) || f.exit != runLost {
		t.Errorf("%v", err)
	}
}
