package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// readBelow reads a process and all that descend from it, by their lists of children,
// so that the cost does not depend on who else is on the machine. It is a fast way to
// find whom to kill, and no proof: a list may be torn while processes start and end.
// ok is false where the kernel has no such lists (CONFIG_PROC_CHILDREN), or they can't
// be read.
func readBelow(proc string, top int) (below map[int]process, ok bool) {
	below = map[int]process{}
	for next := []int{top}; len(next) > 0; {
		pid := next[len(next)-1]
		next = next[:len(next)-1]
		if _, seen := below[pid]; seen {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("%s/%d/stat", proc, pid))
		if err != nil {
			if pid == top {
				return nil, false
			}
			continue // it has ended
		}
		p, whole := parseStat(pid, stat)
		if !whole {
			continue
		}
		below[pid] = p
		children, err := childrenOf(proc, pid)
		if err != nil && pid == top {
			return nil, false
		}
		next = append(next, children...)
	}
	return below, true
}

// childrenOf returns the children of all threads of a process.
func childrenOf(proc string, pid int) ([]int, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("%s/%d/task/[0-9]*", proc, pid))
	if err != nil || len(tasks) == 0 {
		return nil, errors.Join(err, syscall.ESRCH)
	}
	var children []int
	read := 0
	for _, task := range tasks {
		list, err := os.ReadFile(filepath.Join(task, "children"))
		if err != nil {
			continue // the thread has ended, or there are no lists
		}
		read++
		for _, field := range bytes.Fields(list) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	if read == 0 {
		return nil, os.ErrNotExist
	}
	return children, nil
}
