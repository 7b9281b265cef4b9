//go:build untold

package main

import "github.com/ticketing-io/ticketing/core/node"

// observe leaves a node without observers. The tag untold is only for the benchmark that
// says what telemetry costs (cmd/peers/telemetry.sh): such a server has empty metrics.
func (w *watch) observe(o node.Options) node.Options { return o }
