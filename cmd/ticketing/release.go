package main

import (
	"strconv"

	"github.com/spf13/cobra"
)

func newRelease(p *program) *cobra.Command {
	var (
		flags  clientFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "release KEY TOKEN",
		Short:   "Give back a lock that acquire took",
		GroupID: groupLocks,
		Long: `Gives back the lock named KEY that was granted with TOKEN. It never hits another
grant: when TOKEN is no longer the key's current one, nothing changes and the exit
code is 6.

Exit codes:
` + exitCodeLines(exitCodes),
		Example: `  ticketing release order-42 1764547200000123
  ticketing release order-42 "$TOKEN" --json`,
		Args:              exactArgs("KEY", "TOKEN"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			key := args[0]
			token, err := parseToken(args[1])
			if err != nil {
				return usageFault(cmd, err)
			}
			broker, err := flags.connect(p)
			if err != nil {
				return releaseFault(cmd.Context(), err)
			}
			defer broker.Close()
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if err := broker.Release(ctx, key, token); err != nil {
				return releaseFault(ctx, err)
			}
			if asJSON {
				return printJSON(p.stdout, releaseJSON{key, strconv.FormatUint(token, 10), true})
			}
			return printText(p.stdout, "released %q", key)
		},
	}
	jsonFlag(cmd, &asJSON)
	flags.add(cmd)
	return cmd
}

// releaseJSON is what release prints with --json.
type releaseJSON struct {
	Key      string `json:"key"`
	Token    string `json:"token"`
	Released bool   `json:"released"`
}
