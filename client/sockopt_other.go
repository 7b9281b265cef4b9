//go:build !linux

package client

import "syscall"

// setUserTimeout does nothing where there is no such option; keep-alive finds a
// silent peer then, unless something is being sent to it.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
