package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// commands returns every command that a person can call, by its name behind
// "ticketing".
func commands() map[string]*cobra.Command {
	root := newRoot(newTestProgram())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	all := map[string]*cobra.Command{}
	for _, cmd := range root.Commands() {
		if cmd.Hidden {
			continue
		}
		all[cmd.Name()] = cmd
		if cmd.Name() == "completion" {
			continue // cobra's
		}
		for _, below := range cmd.Commands() {
			all[cmd.Name()+" "+below.Name()] = below
		}
	}
	return all
}

func TestHelpOfEveryCommand(t *testing.T) {
	golden(t, "help/ticketing", ticketing(t, nil, "--help").stdout)
	for name := range commands() {
		if name == "completion" || name == "help" {
			continue // cobra's text
		}
		t.Run(name, func(t *testing.T) {
			r := ticketing(t, nil, append([]string{"help"}, strings.Fields(name)...)...)
			if r.code != exitOK || r.stderr != "" {
				t.Fatalf("help %s: %v", name, r)
			}
			golden(t, "help/"+strings.ReplaceAll(name, " ", "-"), r.stdout)
		})
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for name, cmd := range commands() {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Example == "" && name != "help" && name != "completion" {
			t.Errorf("%s has no example", name)
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	const width = 120
	for name, cmd := range commands() {
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			if len([]rune(line)) > width {
				t.Errorf("help of %s has a line of %d characters: %s", name, len([]rune(line)), line)
			}
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := ticketing(t, nil, "completion", shell)
		if r.code != exitOK || !strings.Contains(r.stdout, "ticketing") {
			t.Errorf("completion %s: exit code %d, %d bytes", shell, r.code, len(r.stdout))
		}
	}
}
