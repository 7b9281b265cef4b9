package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/control"
	"github.com/ticketing-io/ticketing/core/link"
)

const (
	// leaderPatience is how long a command asks again when nobody leads, or the leader
	// has just changed: an election, and some more.
	leaderPatience = 5 * time.Second
	// askAgain is the time between two rounds.
	askAgain = 500 * time.Millisecond
)

// clusterFlags are the flags of every command that asks a cluster's nodes.
type clusterFlags struct {
	config        string
	nodes         []string
	cert, key, ca string
	insecure      bool
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	textVar(fs, &f.config, "config", "FILE", "a node's configuration: its addresses and certificates are used")
	fs.Var(texts{&f.nodes, "HOST:PORT"}, "node", "a node's address for the other nodes; repeat it for more")
	textVar(fs, &f.cert, "cert", "FILE", "with --node: certificate of an operator or a node, PEM")
	textVar(fs, &f.key, "key", "FILE", "with --node: its private key, PEM")
	textVar(fs, &f.ca, "ca", "FILE", "with --node: the cluster's own CA, PEM")
	fs.BoolVar(&f.insecure, "insecure", false, "with --node: ask another machine without TLS, of a cluster that runs so")
	notBoth(cmd, "config", "node")
	notBoth(cmd, "config", "cert")
	notBoth(cmd, "config", "key")
	notBoth(cmd, "config", "ca")
	notBoth(cmd, "config", "insecure")
}

// clusterHelp says of each of these commands which node is asked.
const clusterHelp = `Any node of the cluster can be asked; it asks the leader. Name one by the
configuration of a node on this machine (--config FILE, or the CLUSTER_… variables that
serve reads), or by its address for the other nodes (--node) with a certificate of the
cluster's CA, an operator's for example.
`

// target is a node that may be asked.
type target struct{ addr, id string } // id "": whoever is there

// cluster is how a command asks a cluster.
type cluster struct {
	link    *link.Link // nil in a test
	pool    *control.Pool
	targets []target // in the order in which they are asked
	plain   bool     // without TLS
}

// close ends all connections.
func (c *cluster) close() {
	c.pool.Close()
	if c.link != nil {
		c.link.Close()
	}
}

// connect finds out which nodes may be asked, and with what certificate. Nobody is
// asked yet.
func (f *clusterFlags) connect(cmd *cobra.Command, p *program) (*cluster, error) {
	cfg := link.Config{TLS: link.Files{Cert: f.cert, Key: f.key, CA: f.ca}, Insecure: f.insecure}
	var targets []target
	if len(f.nodes) > 0 {
		for _, addr := range f.nodes {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return nil, usageFault(cmd, fmt.Errorf("--node %q is no address: write HOST:PORT, as in 127.0.0.1:5226", addr))
			}
			targets = append(targets, target{addr, ""})
		}
		if given := f.cert != "" || f.key != "" || f.ca != ""; given && (f.cert == "" || f.key == "" || f.ca == "") {
			return nil, usageFault(cmd, errors.New("--cert, --key and --ca go together"))
		}
	} else {
		node, err := f.clusterConfig(cmd, p)
		if err != nil {
			return nil, err
		}
		targets = targetsOf(node)
		cfg.TLS = link.Files{Cert: node.Cluster.Cert, Key: node.Cluster.Key, CA: node.Cluster.CA}
		cfg.Insecure = node.Insecure
	}
	if p.dial != nil {
		return &cluster{nil, control.NewPool(p.dial), targets, cfg.TLS == link.Files{}}, nil
	}
	l, err := link.Listen(cmd.Context(), cfg)
	if err != nil {
		return nil, &fault{exitError, err, advice{"No node was asked.", "Check the certificates and who may read them."}}
	}
	return &cluster{l, control.NewPool(func(ctx context.Context, addr, id string) (net.Conn, error) {
		return l.Dial(ctx, link.Control, addr, id)
	}), targets, cfg.TLS == link.Files{}}, nil
}

// clusterConfig reads section [cluster] of a node's configuration. What is wrong with
// other sections is not this command's business.
func (f *clusterFlags) clusterConfig(cmd *cobra.Command, p *program) (config.Config, error) {
	cfg, _, err := config.Load(config.Sources{File: f.config, Env: p.lookupEnv})
	var faults, ours config.Faults
	if errors.As(err, &faults) {
		for _, n := range faults {
			if n.Key == "" || strings.HasPrefix(n.Key, "cluster") {
				ours = append(ours, n)
			}
		}
		if ours != nil {
			return cfg, configFault("the configuration", ours, advice{"Nothing was done.", "Correct what is listed above."})
		}
	} else if err != nil {
		return cfg, err
	}
	switch {
	case cfg.Clustered():
		return cfg, nil
	case f.config != "":
		return cfg, usageFault(cmd, fmt.Errorf("%s has no section [cluster]: it is that of a single server", f.config))
	}
	ways := "--config FILE"
	if cmd.Flags().Lookup("node") != nil {
		ways += " or --node HOST:PORT"
	}
	return cfg, usageFault(cmd, errors.New("no node is named: give "+ways))
}

// targetsOf returns the nodes that a configuration names: its own first, by the
// address that the others use and by the one that it listens on, then its members.
func targetsOf(cfg config.Config) []target {
	one := cfg.Cluster
	var own, others []target
	for _, m := range one.Members {
		if m.ID == one.NodeID {
			own = append(own, target{m.Raft, m.ID})
		} else {
			others = append(others, target{m.Raft, m.ID})
		}
	}
	if host, port, err := net.SplitHostPort(one.Listen); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		if t := (target{net.JoinHostPort(host, port), one.NodeID}); len(own) == 0 || own[0] != t {
			own = append(own, t)
		}
	}
	return append(own, others...)
}

// ask has one node after the other asked until one could, and again for leaderPatience
// while nobody leads. A change that may have been made is not tried again.
func (c *cluster) ask(ctx context.Context, what func(context.Context, *control.Client) error) error {
	for begun := time.Now(); ; {
		var unreachable []error
		var answer error
		for _, t := range c.targets {
			err := what(ctx, c.pool.At(t.addr, t.id))
			switch {
			case err == nil || control.ClassOf(err) != control.Elsewhere || ctx.Err() != nil:
				return err
			case errors.Is(err, control.ErrUnreachable):
				unreachable = append(unreachable, err)
			default:
				answer = err
			}
		}
		switch {
		case answer == nil && len(unreachable) == 1:
			return unreachable[0]
		case answer == nil:
			return &noNode{unreachable}
		case time.Since(begun) >= leaderPatience:
			return answer
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return answer
		}
	}
}

// noNode is that none of several nodes could be asked, each with its reason.
type noNode struct{ reasons []error }

// Error has a line for each.
func (n *noNode) Error() string {
	return "no node can be reached\n" + errors.Join(n.reasons...).Error()
}

// Unwrap returns the reasons.
func (n *noNode) Unwrap() []error { return n.reasons }

// linkAdvice says what to do when there is no stream to a node.
var linkAdvice = []struct {
	err  error
	todo string
}{
	{link.ErrRemoved, "The certificate is that of a node that was removed: use that of another, or an operator's."},
	{link.ErrInsecure, "Give --cert, --key and --ca, or --insecure for a cluster that runs without TLS."},
	{link.ErrUntrusted, "Check --node and --ca: a node of the cluster shows a certificate of the cluster's own CA."},
	{link.ErrWrongNode, "Check the addresses of the members in the configuration."},
	{link.ErrVersion, "Use a version of this program that fits the node's."},
	{link.ErrRefused, "Check the certificate: it must be of the cluster's own CA, and name a node or an operator."},
}

// fault tells an error of a request to the cluster under ctx.
func (c *cluster) fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*control.Error](err)
	if !ok {
		if f, ok := errors.AsType[*fault](err); ok {
			return f
		}
		return &fault{exitError, err, advice{"Nothing was changed.", ""}}
	}
	f := &fault{exitError, err, advice{"Nothing was changed.", e.Todo}}
	switch e.Class {
	case control.Refused:
		f.exit, f.todo = exitRefused, cmp.Or(f.todo, `See how the members are: "ticketing members list".`)
	case control.Unknown:
		f.exit, f.means = exitIndeterminate, "It may have been done, or may still be."
		return f
	}
	if c.plain && errors.Is(err, control.ErrUnreachable) {
		f.todo += " If the cluster has TLS, give --cert, --key and --ca."
	}
	for _, a := range linkAdvice {
		if errors.Is(err, a.err) {
			f.todo = a.todo
			break
		}
	}
	if i, ok := errors.AsType[interrupted](context.Cause(ctx)); ok {
		f.exit = signalBase + int(i.sig)
	}
	return f
}

// onCluster makes the function of a command that asks a cluster.
func onCluster(p *program, f *clusterFlags, do func(ctx context.Context, c *cluster, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := f.connect(cmd, p)
		if err != nil {
			return err
		}
		defer c.close()
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		return c.fault(ctx, do(ctx, c, args))
	}
}

// group makes a command that only has others below it.
func group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		GroupID:               groupCluster,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, b := range cmd.Commands() {
				names = append(names, b.Name())
			}
			which := strings.Join(names, ", ")
			if len(args) == 0 {
				return usageFault(cmd, fmt.Errorf("one of %s is missing behind %s", which, use))
			}
			return usageFault(cmd, fmt.Errorf("%s has no %q; there are %s", use, args[0], which))
		},
	}
	cmd.AddCommand(below...)
	return cmd
}
