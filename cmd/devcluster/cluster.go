package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cluster is the nodes that run, and what a person does to them. One goroutine,
// that of run, uses it.
type cluster struct {
	folder  folder
	program string
	nodes   []*node
	out     *output
	exits   chan exit
	ready   func(context.Context) error // returns when the cluster serves
}

func newCluster(f folder, program string, out io.Writer) *cluster {
	c := &cluster{folder: f, program: program, out: &output{w: out}, exits: make(chan exit, len(names))}
	for _, name := range names {
		c.nodes = append(c.nodes, &node{spec: f.node(name), out: c.out, exits: c.exits})
	}
	return c
}

// run starts the nodes of begin, and runs the cluster until a signal. A node that
// ends stays ended until its name is typed.
func (c *cluster) run(begin []string, in io.Reader, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, n := range c.nodes {
		if !slices.Contains(begin, n.name) {
			continue
		}
		if err := n.start(c.program); err != nil {
			return errors.Join(err, c.end(signals))
		}
	}
	ready := make(chan error, 1)
	go func() { ready <- c.ready(ctx) }()
	typed := readTyped(in)
	serves := false
	for {
		select {
		case err := <-ready:
			if serves = err == nil; !serves {
				c.out.say("no leader after %s, as the log says above (%v)", electionPatience, err)
			}
			c.out.show(guide(c.folder, c.program))
		case e := <-c.exits:
			if err := c.fell(e); err != nil {
				return err
			}
			if !serves && c.running() == 0 {
				return errors.New("every node has ended; the log above says why")
			}
		case line, ok := <-typed:
			if !ok {
				typed = nil
				continue
			}
			if err := c.obey(line); err != nil {
				return errors.Join(err, c.end(signals))
			}
		case sig := <-signals:
			c.out.say("%s: the nodes are told to stop, one after the other; once more ends them at once", sig)
			return c.end(signals)
		}
	}
}

// readTyped returns what a person types, by lines, until its end. The goroutine
// ends with the process: a read of a terminal can't be ended.
func readTyped(in io.Reader) <-chan string {
	typed := make(chan string)
	go func() {
		defer close(typed)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			typed <- strings.TrimSpace(lines.Text())
		}
	}()
	return typed
}

// obey starts the node whose name was typed, and shows what can be typed after
// anything else.
func (c *cluster) obey(line string) error {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == line })
	switch {
	case i < 0:
		c.out.show(guide(c.folder, c.program))
	case c.nodes[i].cmd != nil:
		c.out.say("%s runs already, pid %d", line, c.nodes[i].cmd.Process.Pid)
	default:
		return c.nodes[i].start(c.program)
	}
	return nil
}

// fell tells of a node that ended without being told to.
func (c *cluster) fell(e exit) error {
	c.out.say("%s has ended (%s); %d of %d still run; type %s and Enter to start it again",
		e.node.name, e.state, c.running()-1, c.running(), e.node.name)
	return e.node.ended()
}

func (c *cluster) running() (n int) {
	for _, node := range c.nodes {
		if node.cmd != nil {
			n++
		}
	}
	return n
}

// end stops the nodes one after the other, so that each can hand over what it
// leads. A node that does not stop in time, or any after a signal, is killed.
func (c *cluster) end(signals <-chan os.Signal) error {
	var failed []error
	for _, n := range c.nodes {
		n.signal(syscall.SIGTERM)
		late := time.After(drainTime)
		for n.cmd != nil {
			select {
			case e := <-c.exits:
				c.out.say("%s has stopped (%s)", e.node.name, e.state)
				failed = append(failed, e.node.ended())
			case <-late:
				c.out.say("%s does not stop in %s: killed", n.name, drainTime)
				n.signal(os.Kill)
				failed = append(failed, fmt.Errorf("%s did not stop in %s", n.name, drainTime))
			case <-signals:
				for _, all := range c.nodes {
					all.signal(os.Kill)
				}
			}
		}
	}
	return errors.Join(failed...)
}
