//go:build !linux && !darwin

package node

import "log/slog"

// raiseFileLimit does nothing here: there is no such limit.
func raiseFileLimit(int, *slog.Logger) {}
