//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

var passedOn = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// run refuses: nothing but Linux has what ties a command to its lock.
func (j *job) run() (jobEnd, error) {
	return jobEnd{}, errors.New("run works on Linux only: it needs its parent-death signal")
}

const guardName = "guard"

// newGuard is a command that run needs on Linux.
func newGuard(*program) *cobra.Command {
	return &cobra.Command{Use: guardName, Hidden: true}
}
