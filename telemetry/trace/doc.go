// Package trace makes the traces of acquires, releases and leases that end. A trace is
// built when it is over, out of what the service's observer was told, with explicit times:
// so it costs nothing while a request is under way, and whether it was slow is known when
// it is decided whether to keep it. DESIGN.md argues that.
package trace
