package main

import (
	"io"
	"os"
	"time"
)

// afterLease is how long run goes on to kill what outlived the lease. What can't be
// killed by then hangs in a disk or network.
const afterLease = 5 * time.Second

// job is a command that runs under a lock.
type job struct {
	argv           []string
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	remaining      func() time.Duration // how much of the lease is left
	plan           endPlan
	signals        <-chan os.Signal // to be passed on to the command
	late           func(left []int) // hears of processes that outlive the lease
}

// jobEnd is how a job that was started ended.
type jobEnd struct {
	started bool  // the command was
	exit    int   // as a shell gives it
	lost    bool  // it was ended since its lease was about to end
	gone    bool  // no process of it is left
	late    bool  // some lived on after the lease's end
	left    []int // those that are known to be left
}

// notStarted tells that the command can't be run. The lock is not held.
func notStarted(err error) *fault {
	return &fault{runNotStarted, err, advice{"The command was not started.", "Check its name, its path and that it may be executed."}}
}
