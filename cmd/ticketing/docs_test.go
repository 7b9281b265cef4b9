package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/ticketing-io/ticketing/core/config"
)

const commandsDoc = "../../docs/COMMANDS.md"

// docs/COMMANDS.md names every command and flag, every exit code with its meaning,
// every environment variable and every setting.
func TestCommandsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(commandsDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	needs := func(what, text string) {
		t.Helper()
		if !strings.Contains(doc, text) {
			t.Errorf("%s is not in COMMANDS.md as\n%s", what, text)
		}
	}
	for name, cmd := range commands() {
		if !cmd.Runnable() || name == "completion" || name == "help" {
			continue
		}
		heading, chapter := "## "+name+"\n", "## "+strings.Fields(name)[0]+"\n"
		if strings.Contains(name, " ") {
			heading = "#" + heading // below its chapter
		}
		needs("the command "+name, "\n"+heading)
		section := sectionOf(doc, chapter)
		for _, shared := range []string{"client", "cluster"} {
			if cmd.Flags().Lookup(map[string]string{"client": "addr", "cluster": "node"}[shared]) != nil {
				section += sectionOf(doc, "## What the "+shared+" commands share\n")
			}
		}
		visibleFlags(cmd, func(f *pflag.Flag) {
			if !strings.Contains(section, "`--"+f.Name) {
				t.Errorf("the flag --%s of %s is not in its section of COMMANDS.md", f.Name, name)
			}
		})
	}
	for _, codes := range [][]exitCode{exitCodes, clusterExitCodes, runExitCodes} {
		for _, c := range codes {
			needs("exit code "+c.code, fmt.Sprintf("| %s | %s |\n", c.code, c.text))
		}
	}
	for _, v := range append(clientEnv, jobEnv...) {
		needs("the variable "+v.name, "`"+v.name+"`")
	}
	for _, k := range config.Keys() {
		needs("the setting "+k.Name, settingRow(k))
	}
}

// settingRow is the row of a setting in the table of serve.
func settingRow(k config.Key) string {
	flag := fmt.Sprintf(" `%s`", strings.TrimSpace("--"+k.Flag+" "+k.Value))
	if k.Secret {
		flag = ""
	}
	text := k.Help
	if k.Default != "" && !k.Switch() {
		text += "; default " + k.Default
	}
	return fmt.Sprintf("|%s | `%s` | `%s` | %s |\n", flag, k.Env, k.Name, text)
}

func visibleFlags(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			visit(f)
		}
	})
}

// sectionOf returns what stands between a heading and the next of its kind.
func sectionOf(doc, heading string) string {
	_, rest, _ := strings.Cut(doc, "\n"+heading)
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}
