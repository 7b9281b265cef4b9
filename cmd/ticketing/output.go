package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json to a command.
func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print one JSON object, for scripts")
}

// printJSON writes one object on one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return printed(enc.Encode(v))
}

// printText writes one line for people.
func printText(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, format+"\n", args...)
	return printed(err)
}

// printed tells that the result could not be written.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return &fault{exitError, fmt.Errorf("write the result: %w", err), advice{"The command was carried out, but its result is lost.", "Check where the output goes."}}
}

// seconds is a duration in JSON: a number of seconds, to the millisecond, rounded
// down as a lease's remaining time must be.
type seconds time.Duration

// MarshalJSON writes the number.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(s).Milliseconds()) / 1000)
}
