// Package replica is the proposer of a cluster: an entry is applied when a majority of
// the voters has it on disk. It is the only user of hashicorp/raft. DESIGN.md argues the
// choices.
//
//	service ── Propose ──> proposing loop ── raft ──> FSM: lock.Machine, on every node
//	   ^                        │                          │
//	   └── Applied, Lost, ──────┘ <──────── outcome ───────┘
//	       Refused, Next
//	   ^
//	   └── Elected, Lead, Follow ── leading loop <── raft's leadership
//
// A Replica lives through generations: stores and raft are opened, run until they fail
// or the node stops, and are closed. A disk that was full, or hung, ends a generation,
// not the node.
package replica
