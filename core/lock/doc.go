// Package lock is the lock table as a state machine: which key is granted to
// whom, under which fencing token, until when (docs/PROTOCOL.md, section 3).
//
// It is pure. What comes out of Machine.Apply is a function of the state and the
// entry alone: there is no clock, no goroutine and no configuration in it, so a
// server in memory and every replica of a cluster run the same code, and replicas
// that applied the same entries are equal. Its time is what entries tell it.
//
// Beside the grants it keeps what a cluster replicates with them: the token counter,
// members' addresses and the feature level. DESIGN.md argues the choices.
//
// Waiters are not known here: they live in core/service, on the leader.
package lock
