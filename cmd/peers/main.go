// Command peers measures one loop of acquire and release against Ticketing and
// against what a user would pick instead, so that every figure of a comparison
// comes from the same loop, the same machine and the same run. The scripts beside it
// run it; README.md says what its figures mean.
//
// It is a module of its own, so that the clients of other systems are no
// dependencies of the product.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"
)

const usage = `Usage:
  peers run [flags]      measure one system, print one line of JSON
  peers echo ADDR        serve the floor: answer every byte with itself
  peers ports N          print N loopback addresses whose ports are free
  peers leader ADDRS     print which of a cluster's nodes leads, once one does
  peers ready ADDRS      print in how many seconds a client took and gave back a lock
  peers hold ADDRS N     take N keys for the longest lease, and keep them
  peers collector ADDR [-hang]
                         take traces until told to stop, and print how many bytes they
                         were; with -hang never answer
  peers table FILE       turn recorded measurements into Markdown tables
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("peers: ")
	if err := command(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func command(args []string, out io.Writer) error {
	if len(args) == 0 {
		args = []string{"help"}
	}
	switch name, args := args[0], args[1:]; {
	case name == "help":
		_, err := io.WriteString(out, usage)
		return err
	case name == "run":
		return runCommand(args, out)
	case name == "echo" && len(args) == 1:
		return serveEcho(args[0])
	case name == "ports" && len(args) == 1:
		return printFreePorts(args[0], out)
	case name == "leader" && len(args) == 1:
		return printLeader(split(args[0]), out)
	case name == "ready" && len(args) == 1:
		return printReady(split(args[0]), out)
	case name == "hold" && len(args) == 2:
		return holdKeys(split(args[0]), args[1])
	case name == "collector" && len(args) == 1:
		return serveCollector(args[0], false, out)
	case name == "collector" && len(args) == 2 && args[1] == "-hang":
		return serveCollector(args[0], true, out)
	case name == "table" && len(args) == 1:
		return tableCommand(args[0], out)
	}
	return fmt.Errorf("%q is no command; peers help lists them", strings.Join(args, " "))
}

func split(addrs string) []string { return strings.Split(addrs, ",") }

// peers are the systems that can be measured, each by the function that opens
// one worker's client.
var peers = map[string]func(ctx context.Context, addrs []string) (locker, error){
	"echo":      openEcho,
	"ticketing": openTicketing,
	"redis":     openRedis,
	"etcd":      openEtcd,
	"zookeeper": openZooKeeper,
}

// patience is how long a measurement may take beyond its own time, to connect
// and for its last pairs, before it is given up as hung.
const patience = 30 * time.Second

func runCommand(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	peer := flags.String("peer", "ticketing", "echo, ticketing, redis, etcd or zookeeper")
	addr := flags.String("addr", "127.0.0.1:5225", "comma-separated addresses")
	workers := flags.Int("workers", 16, "concurrent workers, each with a connection of its own")
	keys := flags.Int("keys", 0, "keys shared by all workers; 0 gives each worker its own")
	length := flags.Duration("time", 5*time.Second, "measured time, after a warm-up of a fifth of it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	open, ok := peers[*peer]
	if !ok {
		return fmt.Errorf("unknown peer %q", *peer)
	}
	if *workers < 1 || *keys < 0 || *length <= 0 {
		return errors.New("workers and time must be positive, and keys not negative")
	}
	ctx, cancel := context.WithTimeout(context.Background(), *length*6/5+patience)
	defer cancel()
	m, err := measure(ctx, open, split(*addr), *workers, *keys, *length)
	if err != nil {
		return fmt.Errorf("%s: %w", *peer, err)
	}
	m.Peer = *peer
	if err := json.NewEncoder(out).Encode(m); err != nil {
		return err
	}
	if m.DoubleGrants > 0 {
		return fmt.Errorf("%s: a key was held twice at once, %d times", *peer, m.DoubleGrants)
	}
	return nil
}

// Ports are taken below the range from which the kernel takes those of connections:
// a server that is started again must find its own free.
const lowestPort, highestPort = 10000, 19000

// printFreePorts takes n ports at once, so that they differ, and frees them: a
// server that can't say which port it got is told one of them.
func printFreePorts(count string, out io.Writer) error {
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		return fmt.Errorf("number of ports %q: %w", count, err)
	}
	first := rand.IntN(highestPort - lowestPort)
	for i := 0; n > 0; i++ {
		if i > highestPort-lowestPort {
			return errors.New("no free ports")
		}
		port := lowestPort + (first+i)%(highestPort-lowestPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer listener.Close()
		fmt.Fprintln(out, listener.Addr())
		n--
	}
	return nil
}
