// Package service decides what a request gets: it is granted, it waits, or it is
// refused (docs/PROTOCOL.md, sections 3 and 4).
//
// It owns what the replicated machine does not know: admission, the queue of each
// key, the waiters and the connections they belong to, and the timer that ends
// waits and leases. It knows nothing of frames or sockets, and it changes the
// table of grants only through a Proposer, in entries: in core/local an entry is
// applied at once, in a cluster when a quorum has it. In a cluster it is told where
// its node stands, and answers requests or sends them to the leader accordingly.
// DESIGN.md argues the choices.
//
//	Acquire ─┬─ refused: Busy, TimedOut
//	         ├─ key taken: parked in the key's queue ──┐
//	         └─ key free: first of its queue ──────────┴─> seal ─> Proposer
//	Release ───────────────────────────────────────────────> seal ─> Proposer
//	timer: waits and leases that end ──────────────────────> seal ─> Proposer
//	                                                                    │
//	Sink.Deliver <─ Granted, Released, NotCurrent <─ settle <───────────┘
//
//	Lead, Elected, Follow: where the node stands ─> Sink.Leader, Sink.End
package service
