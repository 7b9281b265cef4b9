//go:build linux || darwin

package node

import (
	"log/slog"
	"syscall"
)

// spareFiles is how many file descriptors a server needs besides its connections:
// listeners, logs, the runtime's own, files that are re-read.
const spareFiles = 128

// raiseFileLimit raises the process's limit of open files to what the connections
// need, or says that it can't.
func raiseFileLimit(connections int, log *slog.Logger) {
	need := uint64(connections) + spareFiles
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("can't read the limit of open files", "error", err)
		return
	}
	have := limit.Cur
	if have >= need {
		return
	}
	raised := limit
	raised.Cur = need
	raised.Max = max(raised.Max, need) // more than before is given to the privileged only
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err == nil {
		log.Info("raised the limit of open files", "from", have, "to", need)
		return
	}
	raised.Cur, raised.Max = limit.Max, limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err == nil {
		have = raised.Cur
	}
	log.Warn("the limit of open files is too low for max_connections: beyond it new clients are kept waiting; raise it (ulimit -n, LimitNOFILE=)",
		"have", have, "need", need)
}
