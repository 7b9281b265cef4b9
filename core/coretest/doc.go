// Package coretest runs whole clusters in one process, in fake time, and breaks them: the
// network, the disks and the processes fail as a seeded schedule says, while seeded clients
// ask for keys. What the clients were told and what the nodes applied is written down, and
// checked against what the protocol promises (docs/PROTOCOL.md, section 3).
//
//	clients ──> service ──> replica ──> raft ──> Disk
//	   │                       │          └────> Network
//	   v                       v
//	History ── Check ──     Ledger ── Check ──
//
// Everything in it belongs into a bubble of testing/synctest: nothing does real input or
// output, and every wait is a timer or a channel. DESIGN.md argues the choices.
package coretest
