// Package logs makes the log of a node: one line an event, in text or JSON, that a key
// or another peer's words can't forge, with the trace it belongs to where there is one.
// Lines of a flood are left out, and counted.
package logs
