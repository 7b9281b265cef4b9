//go:build !linux

package main

import "io"

// isClosed knows of closed streams on Linux only.
func isClosed(io.Writer) bool { return false }
