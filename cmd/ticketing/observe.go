//go:build !untold

package main

import "github.com/ticketing-io/ticketing/core/node"

// observe has a node tell its telemetry what it does.
func (w *watch) observe(o node.Options) node.Options {
	o.Service, o.Server, o.Replica = w.telemetry.Service(), w.telemetry.Server(), w.telemetry.Replica()
	return o
}
