package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/control"
)

func newMembersList(p *program) *cobra.Command {
	var (
		flags  clusterFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the members of a cluster and how they are",
		Long: `Lists the members as their leader sees them: who leads and who has a vote, who is
healthy (answers and is close behind), the index of the log up to which each has
applied it, and how many entries it is behind. Without a leader, each node that is
named is asked how it stands itself; the exit code is 1 then.

` + clusterHelp + `
Exit codes:
` + exitCodeLines(clusterExitCodes),
		Example: `  ticketing members list --config ticketing.toml
  ticketing members list --node a.example:5226 --cert alice.pem --key alice-key.pem --ca cluster-ca.pem --json`,
		Args: exactArgs(),
		RunE: onCluster(p, &flags, func(ctx context.Context, c *cluster, _ []string) error {
			list, err := listMembers(ctx, c)
			if err != nil {
				return listNodes(ctx, p, c, asJSON, err)
			}
			if asJSON {
				return printJSON(p.stdout, membersJSON{Members: membersAsJSON(list)})
			}
			return printed(printMembers(p.stdout, list))
		}),
	}
	flags.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// printMembers prints the members for people, and what the cluster can bear.
func printMembers(w io.Writer, list []control.Member) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MEMBER\tROLE\tHEALTH\tINDEX\tBEHIND\tLEVEL\tRAFT\tCLIENT\tADMIN")
	voters, healthy := 0, 0
	for _, m := range list {
		health := healthOf(m)
		if m.Voter {
			voters++
			if health != unreachable && health != behind && health != notYet {
				healthy++
			}
		}
		log := fmt.Sprintf("%d\t%d\t%d", m.Applied, m.Lag, m.Level)
		if m.Level == 0 { // this leader has not heard of it
			log = "-\t-\t-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(m.ID), roleOf(m), health, log,
			printable(m.Raft), printable(m.Client), printable(cmp.Or(m.Admin, "-")))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	needed := voters/2 + 1
	spare := fmt.Sprintf("%d more may fail", healthy-needed)
	if healthy <= needed {
		spare = "none may fail"
	}
	if _, err := fmt.Fprintf(w, "\n%d of %d voters are healthy, %d are needed: %s\n", healthy, voters, needed, spare); err != nil {
		return err
	}
	for _, m := range list {
		if m.Why != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", printable(m.ID), printable(m.Why)); err != nil {
				return err
			}
		}
	}
	return nil
}

func roleOf(m control.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "non-voter"
}

const (
	unreachable = "unreachable"
	behind      = "behind"
	notYet      = "not known yet"
)

// unheard tells that the leader has not asked a member yet, since it leads only now.
func unheard(m control.Member) bool { return !m.Leader && !m.Reachable && m.Why == "" }

// hearing bounds how long a list waits until a new leader has asked every member: it
// does so once a second.
const hearing = 3 * time.Second

// listMembers returns the members, when their leader has heard of each if that does
// not take long.
func listMembers(ctx context.Context, c *cluster) ([]control.Member, error) {
	for begun := time.Now(); ; {
		var list []control.Member
		err := c.ask(ctx, func(ctx context.Context, node *control.Client) (err error) {
			list, err = node.Members(ctx)
			return err
		})
		if err != nil || !slices.ContainsFunc(list, unheard) || time.Since(begun) >= hearing {
			return list, err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return list, nil
		}
	}
}

// healthOf says in a word how a member is.
func healthOf(m control.Member) string {
	switch {
	case m.Leader:
		return "healthy"
	case unheard(m):
		return notYet
	case !m.Reachable || m.Why != "":
		return unreachable
	case m.Healthy == 0:
		return behind
	}
	return "healthy " + m.Healthy.Truncate(time.Second).String()
}

// membersJSON is what members list prints with --json: Nodes in place of Members when
// nobody leads.
type membersJSON struct {
	Members []memberJSON     `json:"members"`
	Nodes   []control.Status `json:"nodes,omitempty"`
}

type memberJSON struct {
	ID        string  `json:"id"`
	Raft      string  `json:"raft"`
	Client    string  `json:"client"`
	Admin     string  `json:"admin"`
	Voter     bool    `json:"voter"`
	Leader    bool    `json:"leader"`
	Reachable bool    `json:"reachable"`
	Healthy   bool    `json:"healthy"`
	For       seconds `json:"healthy_for"`
	Why       string  `json:"why"`
	Applied   uint64  `json:"applied_index"`
	Lag       uint64  `json:"lag"`
	Level     uint32  `json:"supports_level"`
}

func membersAsJSON(list []control.Member) []memberJSON {
	all := make([]memberJSON, 0, len(list))
	for _, m := range list {
		all = append(all, memberJSON{m.ID, m.Raft, m.Client, m.Admin, m.Voter, m.Leader, m.Reachable,
			m.Leader || m.Healthy > 0, seconds(m.Healthy), m.Why, m.Applied, m.Lag, m.Level})
	}
	return all
}

// listNodes lists how each node that is named stands by its own word, for somebody who
// must find out why nobody leads. It returns why not.
func listNodes(ctx context.Context, p *program, c *cluster, asJSON bool, why error) error {
	if control.ClassOf(why) != control.Elsewhere || ctx.Err() != nil {
		return why
	}
	byID := map[string]control.Status{}
	for _, t := range c.targets {
		if s, err := c.pool.At(t.addr, t.id).Status(ctx); err == nil {
			byID[s.Self.ID] = s
		}
	}
	if len(byID) == 0 {
		return why
	}
	nodes := make([]control.Status, 0, len(byID))
	for _, s := range byID {
		nodes = append(nodes, s)
	}
	slices.SortFunc(nodes, func(a, b control.Status) int { return cmp.Compare(a.Self.ID, b.Self.ID) })
	var err error
	if asJSON {
		err = printJSON(p.stdout, membersJSON{Members: []memberJSON{}, Nodes: nodes})
	} else {
		err = printed(printNodes(p.stdout, nodes))
	}
	return errors.Join(why, err)
}

// printNodes prints for people what the nodes say of themselves.
func printNodes(w io.Writer, nodes []control.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tROLE\tLOG TERM\tLAST\tCOMMIT\tAPPLIED\tVOTERS\tDISK")
	for _, s := range nodes {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", printable(s.Self.ID), printable(string(s.Role)), s.LastTerm, s.Last, s.Commit, s.Applied,
			len(s.Voters), printable(string(s.Disk)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range nodes {
		if s.Why != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", printable(s.Self.ID), printable(s.Why)); err != nil {
				return err
			}
		}
	}
	return nil
}
