// Package server speaks the wire protocol on TCP and TLS: it accepts connections
// and bounds them, authenticates, reads requests, and writes answers
// (docs/PROTOCOL.md, sections 1, 2 and 4). What a request gets is decided by
// core/service; DESIGN.md says how bytes travel and why.
//
// One goroutine, the connection's reader, owns a connection from its accept to its
// end. Answers that others cause (a hand-over, a wait that ran out) are written by
// whoever caused them, if the socket takes them at once, and otherwise by a
// goroutine that lives as long as there is something to write.
package server
