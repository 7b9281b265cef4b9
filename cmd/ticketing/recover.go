package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/telemetry/logs"
)

func newRecover(p *program) *cobra.Command {
	var (
		flags clusterFlags
		quiet quietFlag
		peers string
	)
	cmd := &cobra.Command{
		Use:     "recover --config FILE --peers PEERS.json",
		Short:   "Bring back a cluster that lost most of its voters for good",
		GroupID: groupCluster,
		Long: `Gives a stopped node another list of voters. This is for one case only: most voters are
gone for good, so that the cluster can never have a leader again. What only the lost
nodes knew is lost; a node that is merely down is better started again.

  1. See which node that is left has the newest log in members list, with --node for
     each: the highest LOG TERM and, among equals, the highest LAST.
  2. Stop all nodes that are left, and save the data folder of each.
  3. Write PEERS.json, the new list of voters, with that node in it:
     [{"id": "a", "address": "a.example:5226"}, {"id": "b", "address": "b.example:5226"}]
  4. Run this with the same PEERS.json on each node that it names.
  5. Start these nodes, the one with the newest log among them.
  6. Add new nodes with members add, and never start again one that PEERS.json leaves out.

Locks may be lost that were granted. So the fencing tokens go on far above all that can
have been granted, and nothing is granted for ` + quietPeriod + `, the longest lease, after which
nobody can hold a lock that is not known.

Exit codes:
` + exitCodeLines(clusterExitCodes),
		Example: `  ticketing recover --config ticketing.toml --peers peers.json`,
		Args:    exactArgs(),
	}
	textVar(cmd.Flags(), &flags.config, "config", "FILE", "the stopped node's configuration")
	textVar(cmd.Flags(), &peers, "peers", "FILE", "the new list of voters, JSON")
	quiet.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		waive, err := quiet.waived(cmd)
		if err != nil {
			return err
		}
		if peers == "" {
			return usageFault(cmd, errors.New("--peers is missing: name the file with the new list of voters"))
		}
		cfg, err := flags.clusterConfig(cmd, p)
		if err != nil {
			return err
		}
		voters, err := recoverNode(p, cfg, peers, waive)
		if err != nil {
			return recoverFault(cfg, err)
		}
		next := "Start it."
		if voters > 1 {
			next = "Run this with the same file on each other node that it names, then start them."
		}
		return printText(p.stdout, "recovered node %q: %s\nTokens go on far above all that was granted. %s\n%s",
			cfg.Cluster.NodeID, votersText(voters), quietText(waive), next)
	}
	return cmd
}

func votersText(n int) string {
	if n == 1 {
		return "it is the only voter"
	}
	return fmt.Sprintf("it is one of %d voters", n)
}

// recoverNode works on the data folder of a node that must not run.
func recoverNode(p *program, cfg config.Config, peers string, waive bool) (voters int, err error) {
	one := cfg.Cluster
	if _, err := os.Stat(one.DataDir); err != nil {
		return 0, fmt.Errorf("the data folder: %w", err)
	}
	return replica.Recover(replica.Options{
		NodeID:  one.NodeID,
		DataDir: one.DataDir,
		Timers: replica.Timers{
			Heartbeat: one.Heartbeat, Election: one.Election, LeaderLease: one.LeaderLease,
			SnapshotInterval: one.SnapshotInterval, SnapshotThreshold: uint64(one.SnapshotThreshold),
		},
		Logger: logs.New(p.stderr, config.LogText, slog.LevelWarn),
	}, peers, waive)
}

// recoverFault tells why a node was not recovered.
func recoverFault(cfg config.Config, err error) error {
	f := &fault{exitError, err, advice{"The node was not recovered.", "Correct that, and run this again. If the data folder was saved, put it back first."}}
	refusal, refused := errors.AsType[*replica.Refusal](err)
	switch {
	case refused:
		f.exit, f.err, f.means, f.todo = exitRefused, refusal, "Nothing was changed.", "Correct the peers file, or run this elsewhere."
	case errors.Is(err, replica.ErrInUse):
		f.exit, f.means, f.todo = exitRefused, fmt.Sprintf("The node runs, in %s. Nothing was changed.", cfg.Cluster.DataDir), "Stop it first. A cluster that has a leader needs no recovery."
	case errors.Is(err, os.ErrNotExist):
		f.means, f.todo = "Nothing was changed.", "Check --peers, and cluster.data_dir: it must be that of the node that is left."
	}
	return f
}
