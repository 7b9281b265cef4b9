// Command devcluster runs a cluster of three nodes on this machine, to try it and
// to break it: "make cluster". It makes certificates, a client token and a
// configuration file for each node under a scratch folder, starts the nodes, shows
// their logs as one, and ends them in order on Ctrl-C. What the nodes have stored
// stays for the next time.
//
// It is a tool for whoever works on Ticketing, and no example of how to keep keys:
// everybody who can read the folder is an operator of the cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ticketing-io/ticketing/client"
)

// electionPatience is how long nodes that have started may take to agree on a
// leader before a person is told that they have not.
const electionPatience = 30 * time.Second

// signalQueue is how many signals wait to be looked at: one that ends the nodes in
// order, and one that ends them at once.
const signalQueue = 2

const usage = `Runs a cluster of three nodes on this machine until Ctrl-C.

Usage: devcluster [flags]

`

func main() {
	if err := command(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func command(args []string, in io.Reader, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&s.dir, "dir", ".cluster", "scratch `folder` for all files")
	flags.StringVar(&s.program, "program", "bin/ticketing", "the server's program `file`")
	flags.IntVar(&s.port, "port", 5225, "client `port` of the first node; each node has others from it on")
	flags.BoolVar(&s.fresh, "fresh", false, "forget what the nodes have stored")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag; devcluster -help lists them", flags.Arg(0))
	}
	signals := make(chan os.Signal, signalQueue)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	f := folder{dir: dir, port: s.port}
	begin, err := f.layOut(s.fresh)
	if err != nil {
		return err
	}
	for _, name := range begin {
		if err := f.node(name).free(); err != nil {
			return err
		}
	}
	c := newCluster(f, s.program, out)
	c.ready = func(ctx context.Context) error { return awaitLeader(ctx, f) }
	return c.run(begin, in, signals)
}

// settings are the flags.
type settings struct {
	dir, program string
	port         int
	fresh        bool
}

// awaitLeader returns when a node serves clients.
func awaitLeader(ctx context.Context, f folder) error {
	broker, err := client.New(client.Config{Addrs: f.clientAddrs(), TokenFile: f.token()})
	if err != nil {
		return err
	}
	defer broker.Close()
	ctx, cancel := context.WithTimeout(ctx, electionPatience)
	defer cancel()
	return broker.WaitReady(ctx)
}
