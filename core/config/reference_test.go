package config

import (
	"fmt"
	"strings"
	"testing"
)

// REFERENCE.md is written from the table of keys, so that it can't say otherwise.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Configuration

Written by ` + "`go test ./core/config -update`" + ` from the table of keys; not to be edited.

A flag wins over the environment, that over the file (` + "`--config FILE`" + `, TOML), that over the default. An empty
environment variable counts as not set. Unknown keys in the file are faults. Paths in the file are relative to its
folder, others to the working folder. Lists have commas in the environment and in flags, and are TOML lists in the file.
On SIGHUP the server reads everything again and takes over the keys marked *reload*; if anything is at fault, it keeps
what it has and says so. ` + "`ticketing check-config FILE`" + ` reports every fault of a file at once.
`)
	last := "-"
	for _, k := range Keys() {
		if s := k.Section(); s != last {
			last = s
			title := "## [" + s + "]"
			if s == "" {
				title = "## Outside of sections"
			}
			fmt.Fprintf(&b, "\n%s\n\n| key | environment | flag | default | |\n| --- | --- | --- | --- | --- |\n", title)
		}
		flag := "`--" + k.Flag + strings.TrimRight(" "+k.Value, " ") + "`"
		if k.Secret {
			flag = "refused: arguments can be seen"
		}
		initial := ""
		if k.Default != "" {
			initial = "`" + k.Default + "`"
		}
		help := strings.ToUpper(k.Help[:1]) + k.Help[1:] + "."
		if k.Reload {
			help += " *reload*"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", k.base(), k.Env, flag, initial, help)
	}
	golden(t, "REFERENCE.md", b.String())
}
