package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/client"
)

func newAcquire(p *program) *cobra.Command {
	var (
		flags  clientFlags
		times  lockFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "acquire KEY",
		Short:   "Take a lock, leave it held, and print its token",
		GroupID: groupLocks,
		Long: `Takes the lock named KEY and leaves it held: nothing renews it and nothing but
"ticketing release KEY TOKEN" gives it back before its lease ends. The fencing
token is printed alone on a line.

A script that holds a lock around one command is safer with "ticketing run", which
ends the command before the lease can end.

Exit codes:
` + exitCodeLines(exitCodes),
		Example: `  TOKEN=$(ticketing acquire order-42 --lease 60s) || exit
  ./change-order 42 "$TOKEN"
  ticketing release order-42 "$TOKEN"

  ticketing acquire order-42 --wait 0s --json`,
		Args:              exactArgs("KEY"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			survivePipes() // so that a token that nobody reads is an error
			if isClosed(p.stdout) {
				return &fault{exitError, errors.New("stdout is closed, so nobody would learn the token"), advice{"Nothing was acquired.", "Check where the output goes."}}
			}
			broker, err := flags.connect(p)
			if err != nil {
				return acquireFault(cmd.Context(), err)
			}
			defer broker.Close()
			return acquire(cmd.Context(), p, broker, args[0], times, asJSON)
		},
	}
	times.add(cmd)
	jsonFlag(cmd, &asJSON)
	flags.add(cmd)
	return cmd
}

// grantJSON is what acquire prints with --json. Numbers of 64 bits are strings:
// many readers of JSON keep 53.
type grantJSON struct {
	Key       string  `json:"key"`
	Token     string  `json:"token"`
	Owner     string  `json:"owner"`
	Domain    string  `json:"domain"`
	Lease     seconds `json:"lease"`
	Remaining seconds `json:"remaining"`
}

func acquire(ctx context.Context, p *program, broker *client.Broker, key string, times lockFlags, asJSON bool) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	ticket, err := broker.Acquire(ctx, key, times.wait, times.lease, 0)
	if err != nil {
		return acquireFault(ctx, err)
	}
	grant := grantJSON{
		Key:       key,
		Token:     strconv.FormatUint(ticket.Token(), 10),
		Owner:     strconv.FormatUint(ticket.Owner(), 10),
		Domain:    ticket.Domain().String(),
		Lease:     seconds(wholeSeconds(times.lease)),
		Remaining: seconds(ticket.Remaining()),
	}
	if asJSON {
		err = printJSON(p.stdout, grant)
	} else {
		err = printText(p.stdout, "%s", grant.Token)
	}
	if err != nil {
		// Nobody has read the token, so nobody else could release it.
		return giveBack(ticket, err)
	}
	ticket.Detach()
	return nil
}

func giveBack(ticket *client.Ticket, because error) error {
	advice := advice{"The lock was given back.", "Check where the output goes."}
	if err := ticket.Close(); err != nil {
		advice.means = fmt.Sprintf("The lock could not be given back: %s. Its lease's end frees it.", err)
	}
	return &fault{exitError, because, advice}
}
