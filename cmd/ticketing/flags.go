package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// text is a flag whose help names what it takes: "--ca FILE".
type text struct {
	to   *string
	kind string
}

// String returns the value.
func (t text) String() string {
	if t.to == nil { // pflag asks a zero value for its default
		return ""
	}
	return *t.to
}

// Set takes the value.
func (t text) Set(s string) error { *t.to = s; return nil }

// Type returns what the value is.
func (t text) Type() string { return t.kind }

// textVar adds a text flag; what *to holds is its default.
func textVar(fs *pflag.FlagSet, to *string, name, kind, usage string) {
	fs.Var(text{to, kind}, name, usage)
}

// texts is a flag that can be given several times.
type texts struct {
	to   *[]string
	kind string
}

// String returns nothing: its default is told in its usage.
func (t texts) String() string { return "" }

// Set adds a value.
func (t texts) Set(s string) error { *t.to = append(slices.Clip(*t.to), s); return nil }

// Type returns what a value is.
func (t texts) Type() string { return t.kind }

// notBoth refuses a command line with both flags.
func notBoth(cmd *cobra.Command, a, b string) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
			return usageFault(cmd, fmt.Errorf("--%s and --%s can't be used together", a, b))
		}
		if before == nil {
			return nil
		}
		return before(cmd, args)
	}
}
