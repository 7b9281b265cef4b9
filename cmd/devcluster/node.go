package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// drainTime is how long a node that was told to stop may take: as long as
// ticketing serve grants itself, and some more.
const drainTime = 12 * time.Second

// exit is the end of a node's process.
type exit struct {
	node  *node
	state string
}

// node is a node of the cluster and, while it runs, its process.
type node struct {
	spec
	out   *output
	exits chan<- exit
	cmd   *exec.Cmd // nil while it does not run
}

// start starts the process. Its lines go to the output, its end to exits.
func (n *node) start(program string) error {
	cmd := exec.Command(program, "serve", "--config", n.config)
	log := n.out.prefixed(n.name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = time.Second // its output may be held open by what it leaves
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	n.cmd = cmd
	pid := strconv.Itoa(cmd.Process.Pid)
	n.out.say("%s runs, pid %s", n.name, pid)
	go func() {
		cmd.Wait() // how it ended is told by its state
		log.end()
		n.exits <- exit{n, cmd.ProcessState.String()}
	}()
	return writeFile(n.pid, []byte(pid+"\n"))
}

// ended takes note of the process's end.
func (n *node) ended() error {
	n.cmd = nil
	return removeFile(n.pid)
}

func (n *node) signal(sig os.Signal) {
	if n.cmd != nil {
		n.cmd.Process.Signal(sig) // an error says that it has ended: its exit is on the way
	}
}
