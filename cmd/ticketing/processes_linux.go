package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killPause is the time between two looks at the processes that were killed.
const killPause = 2 * time.Millisecond

// deathPauses is how many pauses the killed have to be gone before it is looked who is
// left: 20 ms in all.
const deathPauses = 10

// process is a line of /proc/PID/stat, as far as it is needed.
type process struct {
	pid, parent, group, session int
	ended                       bool // a zombie: it does nothing any more
}

// family is the job's processes below this one: those in the command's group, and
// all that descend from this process and have not begun a session of their own,
// whatever group they are in (timeout, and a shell with job control, make groups of
// their own).
type family struct {
	group int         // the command's process group; 0 when not known, or gone
	keep  int         // a child that somebody else reaps; 0 is none
	alone func() bool // no other process reaps or adopts what is below this one
}

// terminateStrays asks those to end that are in other groups than the command's. One
// that is stopped is continued, so that it can.
func (f *family) terminateStrays() {
	for _, p := range f.look().running {
		if p.group != f.group {
			unix.Kill(p.pid, unix.SIGTERM)
			unix.Kill(p.pid, unix.SIGCONT)
		}
	}
}

// end kills the family until none of it is left, and returns true; or false when
// giveUp, which is told who is known to be left, says so: a process can't be killed
// while it sits in a disk or network that hangs, or when it has become another
// user's.
func (f *family) end(giveUp func(left []int) bool) bool {
	if f.killGroup(); f.allReaped() {
		return true
	}
	// Only the second look in a row that finds nothing counts: DESIGN.md says why
	// that is proof.
	for clean := 0; clean < 2; {
		f.killGroup() // at once: a look at the processes of a crowded machine takes long
		alone := f.alone()
		if alone && f.reapAll() {
			return true
		}
		seen := f.look()
		seen.kill()
		f.reap(seen)
		if alone && seen.empty() {
			clean++
			continue
		}
		clean = 0
		if giveUp(seen.pids()) {
			return false
		}
		time.Sleep(killPause)
	}
	return true
}

// allReaped waits a moment for all to be gone, since most jobs are no more than their
// group: then the table of processes need not be read.
func (f *family) allReaped() bool {
	for range deathPauses {
		if f.alone() && f.reapAll() {
			return true
		}
		if f.keep != 0 {
			return false
		}
		time.Sleep(killPause)
	}
	return false
}

func (f *family) killGroup() {
	if f.group > 1 {
		unix.Kill(-f.group, unix.SIGKILL)
	}
}

// reapAll clears away the children that have ended. It is true when this process has
// none any more: a subreaper then has no descendant.
func (f *family) reapAll() bool {
	for f.keep == 0 {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		f.reaped(pid, err)
		if err == syscall.ECHILD {
			return true
		}
		if pid <= 0 {
			return false
		}
	}
	return false
}

// reap clears away the children that were seen to have ended, where not all may be.
func (f *family) reap(seen sight) {
	if f.keep == 0 {
		return
	}
	for _, pid := range seen.zombies {
		syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// reaped forgets the group when its leader is gone: the number may become another's.
func (f *family) reaped(pid int, err error) {
	if err == nil && pid > 0 && pid == f.group {
		f.group = 0
	}
}

// sight is what one look found.
type sight struct {
	running []process
	zombies []int        // own children that wait to be reaped
	counted bool         // one of them was in the session: what it started may be unseen
	shared  map[int]bool // groups that others are in too
	whole   bool         // false when not all could be looked at
}

func (s sight) empty() bool { return s.whole && len(s.running) == 0 && !s.counted }

// kill kills what is running, by group: a fork can't slip through between, as it can
// when a process is killed by its number.
func (s sight) kill() {
	done := map[int]bool{}
	for _, p := range s.running {
		if p.group > 1 && !s.shared[p.group] && !done[p.group] {
			done[p.group] = true
			unix.Kill(-p.group, unix.SIGKILL)
		}
		unix.Kill(p.pid, unix.SIGKILL)
	}
}

func (s sight) pids() []int {
	var pids []int
	for _, p := range s.running {
		pids = append(pids, p.pid)
	}
	return pids
}

// look finds the family: below this process where that shows somebody, and else, or
// when a group may be a stranger's, among all processes.
func (f *family) look() sight {
	self := os.Getpid()
	session, err := unix.Getsid(0)
	if err != nil {
		return sight{}
	}
	if below, ok := readBelow("/proc", self); ok {
		if seen := f.pick(below, false, self, session); len(seen.running) > 0 && f.knows(below, seen) {
			return seen
		}
	}
	all, whole := readProcesses()
	return f.pick(all, whole, self, session)
}

// knows is true when the groups of all that were seen were made by the family.
func (f *family) knows(below map[int]process, seen sight) bool {
	for _, p := range seen.running {
		if _, leader := below[p.group]; p.group != f.group && !leader {
			return false
		}
	}
	return true
}

// pick takes the family of self out of all processes.
func (f *family) pick(all map[int]process, whole bool, self, session int) sight {
	s := sight{whole: whole, shared: map[int]bool{}}
	for _, p := range all {
		inSession := p.session == session
		switch {
		case p.pid == self:
			s.shared[p.group] = true
		case p.ended:
			if p.parent == self && p.pid != f.keep {
				s.zombies = append(s.zombies, p.pid)
				s.counted = s.counted || inSession
			}
		case !inSession:
		case f.group > 1 && p.group == f.group: // 0 is also the group of what entered a PID namespace
			s.running = append(s.running, p)
		default:
			switch kin(all, p, self) {
			case descendant:
				s.running = append(s.running, p)
			case stranger:
				s.shared[p.group] = true
			case unknown: // no reason to spare its group: most are of a job that forks fast
			}
		}
	}
	return s
}

// kinship is what a table of processes says of two of them.
type kinship int

const (
	stranger kinship = iota
	descendant
	unknown // a parent between ended while the table was read
)

// kin tells whether p descends from a process.
func kin(all map[int]process, p process, from int) kinship {
	for steps := 0; steps < len(all); steps++ { // a changing table might hold a ring
		if p.parent == from {
			return descendant
		}
		if p.parent == 0 { // init's, or one outside this process's namespace
			return stranger
		}
		parent, ok := all[p.parent]
		if !ok {
			return unknown
		}
		p = parent
	}
	return stranger
}

// readProcesses reads the table of processes. What ends meanwhile is left out; ok
// is false when anything else could not be read, as for want of descriptors.
func readProcesses() (all map[int]process, ok bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	ok = err == nil
	all = make(map[int]process, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // no process
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			ok = ok && (errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH))
			continue
		}
		if p, whole := parseStat(pid, stat); whole {
			all[pid] = p
		}
	}
	return all, ok
}

// parseStat reads "PID (NAME) STATE PPID PGRP SESSION ..." (proc(5)). The name may
// contain anything, so the fields are counted from its last bracket.
func parseStat(pid int, stat []byte) (process, bool) {
	const state, parent, group, session, threads = 0, 1, 2, 3, 17
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= threads {
		return process{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	// The first thread may have ended while others go on.
	ended := (fields[state][0] == 'Z' || fields[state][0] == 'X') && number(threads) <= 1
	return process{pid, number(parent), number(group), number(session), ended}, true
}
