package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/config"
)

func newCheckConfig(p *program) *cobra.Command {
	var withEnv, asJSON bool
	cmd := &cobra.Command{
		Use:     "check-config FILE",
		Short:   "Check a configuration file, and list every fault with its line",
		GroupID: groupServer,
		Long: `Checks a configuration file as serve would, with every file that it names, and lists
all faults at once, each with its line. Nothing is started. The exit code is 1 when
there is a fault; warnings leave it at 0. No secret is printed.`,
		Example: `  ticketing check-config ticketing.toml
  CLIENT_TOKENS_FILE=tokens ticketing check-config ticketing.toml --env --json`,
		Args: exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			sources := config.Sources{File: args[0]}
			if withEnv {
				sources.Env = p.lookupEnv
			}
			if asJSON {
				return checkJSON(p, sources)
			}
			return check(p, sources)
		},
	}
	cmd.Flags().BoolVar(&withEnv, "env", false, "put the environment's settings over the file's, as serve does")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// check prints for people.
func check(p *program, sources config.Sources) error {
	cfg, warnings, err := config.Load(sources)
	for _, w := range warnings {
		fmt.Fprintln(p.stderr, "warning:", printable(w.String()))
	}
	if err != nil {
		return configFault(sources.File, err, advice{"A server would not start with it.", "Correct what is listed above."})
	}
	return printed(printSummary(p.stdout, sources.File, cfg))
}

func printSummary(w io.Writer, file string, cfg config.Config) error {
	transport := "plain TCP"
	if cfg.TLS.Cert != "" {
		transport = "TLS"
	}
	if cfg.TLS.ClientCA != "" {
		transport = "TLS with client certificates"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: ok\n", file)
	fmt.Fprintf(t, "listen\t%s, %s\n", cfg.Listen, transport)
	fmt.Fprintf(t, "client tokens\t%d\n", len(cfg.ClientTokens))
	fmt.Fprintf(t, "waiters\t%d a key, %d in all\n", cfg.MaxWaiters, cfg.MaxTotalWaiters)
	fmt.Fprintf(t, "connections\t%d\n", cfg.MaxConnections)
	fmt.Fprintf(t, "log\t%s, %s\n", strings.ToLower(cfg.LogLevel.String()), cfg.LogFormat)
	if cfg.Clustered() {
		one := cfg.Cluster
		between := "TLS"
		if one.Cert == "" {
			between = "plain TCP"
		}
		members := "to join"
		if n := len(one.Members); n > 0 {
			members = fmt.Sprintf("of %d", n)
		}
		fmt.Fprintf(t, "cluster\tnode %s %s, %s, %s\n", one.NodeID, members, one.Listen, between)
		fmt.Fprintf(t, "data\t%s\n", one.DataDir)
	}
	return t.Flush()
}

// checkedJSON is what check-config prints with --json.
type checkedJSON struct {
	OK       bool       `json:"ok"`
	Faults   []noteJSON `json:"faults"`
	Warnings []noteJSON `json:"warnings"`
}

type noteJSON struct {
	Source string `json:"source"`
	Key    string `json:"key"`
	Text   string `json:"text"`
}

func checkJSON(p *program, sources config.Sources) error {
	_, warnings, err := config.Load(sources)
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	result := checkedJSON{err == nil, notesJSON(faults), notesJSON(warnings)}
	if err := printJSON(p.stdout, result); err != nil {
		return err
	}
	if !result.OK {
		return &ending{code: exitError}
	}
	return nil
}

func notesJSON(notes []config.Note) []noteJSON {
	list := make([]noteJSON, 0, len(notes))
	for _, n := range notes {
		list = append(list, noteJSON{n.Source, n.Key, n.Text})
	}
	return list
}

// configFault tells everything that is wrong with a configuration.
func configFault(what string, err error, a advice) error {
	var faults config.Faults
	if !errors.As(err, &faults) {
		return &fault{exitError, err, a}
	}
	noun := "faults"
	if len(faults) == 1 {
		noun = "fault"
	}
	return &fault{exitError, fmt.Errorf("%s has %d %s\n%w", what, len(faults), noun, faults), a}
}
