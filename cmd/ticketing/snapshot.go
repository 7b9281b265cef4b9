package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/core/control"
	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/replica"
)

func newSnapshot(p *program) *cobra.Command {
	return group("snapshot", "Save and restore the state of a cluster", `Saves the state of a running cluster as a file, and gives such a file to a new one.

`+clusterHelp, newSnapshotSave(p), newSnapshotRestore(p))
}

func newSnapshotSave(p *program) *cobra.Command {
	var (
		flags  clusterFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save the state of a cluster as a file",
		Long: `Saves which locks are held, by whom and how long, the fencing token that comes next,
and the members. FILE gets it only when all of it has come and was checked; what FILE
held before stays until then. Others can't read it: it tells who holds what.

` + clusterHelp + `
Exit codes:
` + exitCodeLines(clusterExitCodes),
		Example: `  ticketing snapshot save "locks-$(date +%F).snapshot" --config ticketing.toml`,
		Args:    exactArgs("FILE"),
		RunE: onCluster(p, &flags, func(ctx context.Context, c *cluster, args []string) error {
			result, err := saveSnapshot(ctx, c, args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(p.stdout, result)
			}
			return printText(p.stdout, "saved %s: %d bytes, locks held: %d, the next token is %s", printable(result.File), result.Bytes, result.Held, result.Next)
		}),
	}
	flags.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// snapshotJSON is what is told of a snapshot.
type snapshotJSON struct {
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
	Held  int    `json:"held"`
	Next  string `json:"next_token"`
	Level uint32 `json:"level"`
}

// described decodes a snapshot, which checks all of it.
func described(file string, data []byte) (snapshotJSON, error) {
	m, err := lock.Read(bytes.NewReader(data))
	if err != nil {
		return snapshotJSON{}, err
	}
	return snapshotJSON{file, len(data), m.Len(), strconv.FormatUint(m.Next(), 10), m.Level()}, nil
}

// saveSnapshot puts the cluster's state into a file, or leaves that as it was.
func saveSnapshot(ctx context.Context, c *cluster, name string) (snapshotJSON, error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return snapshotJSON{}, fileFault("make a file beside "+name, err)
	}
	defer os.Remove(file.Name()) // there is none when it was renamed
	defer file.Close()
	err = c.ask(ctx, func(ctx context.Context, node *control.Client) error {
		if err := begin(file); err != nil {
			return fileFault("write "+file.Name(), err)
		}
		return node.SaveSnapshot(ctx, file)
	})
	if err != nil {
		return snapshotJSON{}, err
	}
	result, err := stored(file, name)
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err == nil {
		err = syncDir(filepath.Dir(name))
	}
	if err != nil {
		return snapshotJSON{}, fileFault("keep the snapshot", err)
	}
	return result, nil
}

// begin empties a file, so that another attempt finds nothing of the one before.
func begin(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// stored brings a file to the disk and checks what stands there.
func stored(file *os.File, name string) (snapshotJSON, error) {
	if err := file.Sync(); err != nil {
		return snapshotJSON{}, err
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return snapshotJSON{}, err
	}
	result, err := described(name, data)
	if err != nil {
		return result, &fault{exitError, fmt.Errorf("what came is no whole snapshot: %w", err),
			advice{"No snapshot was saved.", "Try again. If it happens again, check the disk of this machine, and the versions of this program and the nodes."}}
	}
	return result, nil
}

// syncDir brings a folder's entries to the disk.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func fileFault(what string, err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{exitError, fmt.Errorf("%s: %w", what, err), advice{"No snapshot was saved.", "Check the folder and its disk, and try again."}}
}

// quietPeriod is how long nothing is granted after a restore or a recovery.
var quietPeriod = fmt.Sprintf("%.0f s", replica.QuietPeriod.Seconds())

// waiver are the words that leave out the quiet period: whoever types them has read
// what they mean.
const waiver = "no-lease-is-live"

// quietFlag is --without-quiet-period.
type quietFlag struct{ words string }

func (q *quietFlag) add(cmd *cobra.Command) {
	textVar(cmd.Flags(), &q.words, "without-quiet-period", waiver,
		"grant at once; with these words you say that nobody works under an old lease")
}

// waived tells whether the quiet period is left out.
func (q *quietFlag) waived(cmd *cobra.Command) (bool, error) {
	if given := cmd.Flags().Changed("without-quiet-period"); given && q.words != waiver {
		return false, usageFault(cmd, fmt.Errorf("--without-quiet-period lets a key be granted that somebody may still hold by an old lease; if nobody does, write --without-quiet-period %s", waiver))
	} else if !given {
		return false, nil
	}
	return true, nil
}

// quietText tells people what comes after a restore or a recovery.
func quietText(waived bool) string {
	if waived {
		return "Locks are granted at once, since the quiet period was waived."
	}
	return "Nothing is granted for " + quietPeriod + ", the longest lease: acquires get \"busy\", releases go on."
}

func newSnapshotRestore(p *program) *cobra.Command {
	var (
		flags  clusterFlags
		quiet  quietFlag
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Give a saved state to a new cluster",
		Long: `Gives a file that snapshot save wrote to a cluster that has granted nothing yet. All of
the file is checked before anything is sent. The locks that it holds are held again, for
what was left of their leases. Members stay as they are.

Locks may have been granted after the file was saved. So the fencing tokens go on far
above all that can have been granted, and nothing is granted for ` + quietPeriod + `, the longest
lease, after which nobody can hold a lock that the file does not know.

` + clusterHelp + `
Exit codes:
` + exitCodeLines(clusterExitCodes),
		Example: `  ticketing snapshot restore locks-2026-11-30.snapshot --config ticketing.toml`,
		Args:    exactArgs("FILE"),
	}
	flags.add(cmd)
	quiet.add(cmd)
	jsonFlag(cmd, &asJSON)
	var waive bool
	var data []byte
	var file snapshotJSON
	send := onCluster(p, &flags, func(ctx context.Context, c *cluster, _ []string) error {
		err := c.ask(ctx, func(ctx context.Context, node *control.Client) error {
			return node.RestoreSnapshot(ctx, bytes.NewReader(data), waive)
		})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(p.stdout, restoredJSON{file, waive})
		}
		return printText(p.stdout, "restored %s: locks held: %d\n%s", printable(file.File), file.Held, quietText(waive))
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if waive, err = quiet.waived(cmd); err != nil {
			return err
		}
		if data, err = readSnapshot(args[0]); err == nil {
			file, err = described(args[0], data)
		}
		if err != nil {
			return &fault{exitError, fmt.Errorf("%s is no snapshot that can be restored: %w", args[0], err),
				advice{"Nothing was sent, and the cluster is as it was.", "Give a file that \"ticketing snapshot save\" wrote, whole."}}
		}
		return send(cmd, args)
	}
	return cmd
}

// restoredJSON is what snapshot restore prints with --json.
type restoredJSON struct {
	snapshotJSON
	Waived bool `json:"quiet_period_waived"`
}

// readSnapshot reads a file into memory, so that what is sent is what was checked.
func readSnapshot(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > control.MaxSnapshot {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that a snapshot can have", info.Size(), control.MaxSnapshot)
	}
	return io.ReadAll(io.LimitReader(file, control.MaxSnapshot))
}
