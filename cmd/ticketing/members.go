package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/control"
)

func newMembers(p *program) *cobra.Command {
	return group("members", "List and change the members of a cluster", `Lists and changes the members of a running cluster.

To replace a node: add the new one under an id that no node ever had, start it, wait
until list says that it is healthy, promote it, and remove the old one.

`+clusterHelp,
		newMembersList(p), newMembersAdd(p), newMembersPromote(p), newMembersRemove(p), newTransferLeader(p))
}

func newMembersAdd(p *program) *cobra.Command {
	var (
		flags  clusterFlags
		who    control.Peer
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "add ID --raft HOST:PORT --client HOST:PORT",
		Short: "Let a new node join, without a vote at first",
		Long: `Makes a node a member without a vote. It gets all that the others have as soon as it
runs; when members list says that it is healthy, members promote gives it its vote.
The id must be one that no node of the cluster ever had: a removed id never comes back.
Of an id that is a member already, the addresses are changed.

` + clusterHelp + `
Exit codes:
` + exitCodeLines(clusterExitCodes),
		Example: `  ticketing members add d --raft d.example:5226 --client d.example:5225 --config ticketing.toml`,
		Args:    exactArgs("ID"),
	}
	fs := cmd.Flags()
	textVar(fs, &who.Raft, "raft", "HOST:PORT", "the new node's address for the other nodes")
	textVar(fs, &who.Client, "client", "HOST:PORT", "the address that clients are told, spelled as they spell it")
	textVar(fs, &who.Admin, "admin", "HOST:PORT", "the address of its admin server, if it has one")
	flags.add(cmd)
	jsonFlag(cmd, &asJSON)
	change := onCluster(p, &flags, func(ctx context.Context, c *cluster, _ []string) error {
		if err := c.ask(ctx, func(ctx context.Context, node *control.Client) error { return node.Add(ctx, who) }); err != nil {
			return err
		}
		return changed(p, asJSON, changeJSON{"added", who.ID},
			"added %q: a member without a vote\nStart it. When members list says that it is healthy: ticketing members promote %s", who.ID, who.ID)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		who.ID = args[0]
		if who.Raft == "" || who.Client == "" {
			return usageFault(cmd, errors.New("--raft and --client are both needed: the new node's addresses for the other nodes and for clients"))
		}
		if err := config.Member(who).Validate(); err != nil {
			return usageFault(cmd, err)
		}
		return change(cmd, args)
	}
	return cmd
}

func newMembersPromote(p *program) *cobra.Command {
	return newMemberChange(p, memberChange{
		use:   "promote",
		short: "Give a member its vote",
		long: `Gives a member its vote. The cluster refuses that while the member does not answer or
has not caught up: as a voter it would hold the others up.`,
		past: "promoted",
		text: "promoted %q: it has a vote",
		do:   (*control.Client).Promote,
	})
}

func newMembersRemove(p *program) *cobra.Command {
	return newMemberChange(p, memberChange{
		use:   "remove",
		short: "Remove a member for good",
		long: `Removes a member for good: its id never comes back. The cluster refuses that when the
voters that are left would have no healthy majority. A node that is down can be
removed; it is told when it comes back.`,
		past: "removed",
		text: "removed %q for good\nStop its node, if it still runs, and delete its data folder. A node in its place needs another id.",
		do:   (*control.Client).Remove,
	})
}

// memberChange is a command that changes one member.
type memberChange struct {
	use, short, long string
	past, text       string // of its result, as JSON and for people
	do               func(node *control.Client, ctx context.Context, id string) error
}

func newMemberChange(p *program, m memberChange) *cobra.Command {
	var (
		flags  clusterFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     m.use + " ID",
		Short:   m.short,
		Long:    m.long + "\n\n" + clusterHelp + "\nExit codes:\n" + exitCodeLines(clusterExitCodes),
		Example: fmt.Sprintf("  ticketing members %s d --config ticketing.toml", m.use),
		Args:    exactArgs("ID"),
		RunE: onCluster(p, &flags, func(ctx context.Context, c *cluster, args []string) error {
			id := args[0]
			if err := c.ask(ctx, func(ctx context.Context, node *control.Client) error { return m.do(node, ctx, id) }); err != nil {
				return err
			}
			return changed(p, asJSON, changeJSON{m.past, id}, m.text, id)
		}),
	}
	flags.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func newTransferLeader(p *program) *cobra.Command {
	var (
		flags  clusterFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "transfer-leader [ID]",
		Short: "Have another member lead",
		Long: `Has the leader hand the leadership to the member ID, or to the one that is most up to
date. Clients follow by themselves; what they had under way when it happens may end
as indeterminate.

` + clusterHelp + `
Exit codes:
` + exitCodeLines(clusterExitCodes),
		Example: `  ticketing members transfer-leader --config ticketing.toml
  ticketing members transfer-leader b --node a.example:5226 --cert alice.pem --key alice-key.pem --ca cluster-ca.pem`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageFault(cmd, fmt.Errorf("at most 1 argument (ID) expected, %d given", len(args)))
			}
			return nil
		},
		RunE: onCluster(p, &flags, func(ctx context.Context, c *cluster, args []string) error {
			id, text := "", "handed the leadership over"
			if len(args) > 0 {
				id = args[0]
				text += fmt.Sprintf(" to %q", id)
			}
			if err := c.ask(ctx, func(ctx context.Context, node *control.Client) error { return node.Transfer(ctx, id) }); err != nil {
				return err
			}
			return changed(p, asJSON, changeJSON{"transferred", id}, "%s", text)
		}),
	}
	flags.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// changeJSON is what a change prints with --json.
type changeJSON struct {
	Done   string `json:"done"`
	Member string `json:"member,omitempty"`
}

// changed prints that a change was made.
func changed(p *program, asJSON bool, result changeJSON, format string, args ...any) error {
	if asJSON {
		return printJSON(p.stdout, result)
	}
	return printText(p.stdout, format, args...)
}
