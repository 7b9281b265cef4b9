package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isClosed says whether w is a standard stream that was closed when the program
// started. The runtime has then opened /dev/null in its place, for reading and
// writing; a shell's >/dev/null is for writing only, and wanted.
func isClosed(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return true
	}
	info, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null) && flags&unix.O_ACCMODE == unix.O_RDWR
}
