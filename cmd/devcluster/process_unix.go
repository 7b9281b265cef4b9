//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a process out of the terminal's foreground group: Ctrl-C must not
// end all nodes at once.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
