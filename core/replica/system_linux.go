package replica

import (
	"time"

	"golang.org/x/sys/unix"
)

// hasRoom tells whether the data folder's disk has room to go on.
func hasRoom(dataDir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dataDir, &fs) == nil && int64(fs.Bavail)*fs.Bsize >= roomNeeded
}

// nap sleeps about so long, to some tens of microseconds.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&ts, nil) // cut short, it is a shorter nap
}
