package control

import "time"

// Bounds of a request. What is exchanged is small, the snapshot aside.
const (
	// AnswerTime is how long a node has for an answer, the wait for the cluster
	// included: longer than an entry may take before it counts as unknown (5 s), or a
	// hand-over of the leadership.
	AnswerTime = 15 * time.Second
	// SnapshotTime bounds a snapshot's way, in either direction.
	SnapshotTime = 2 * time.Minute
	// StallTime is how long either side of a snapshot waits for a single piece.
	StallTime = 10 * time.Second
	// MaxSnapshot is the largest snapshot in bytes: a full table (58,983 keys of 128
	// bytes, each with a holder of 64) is some 15 MB.
	MaxSnapshot = 64 << 20

	headerTime  = 5 * time.Second  // for a request's head to come
	idleTime    = 30 * time.Second // a connection without a request
	maxHeader   = 8 << 10          // bytes
	maxRequest  = 16 << 10         // bytes of a request's JSON
	maxAnswer   = 1 << 20          // bytes of an answer's JSON: 15 members take 10 KiB
	maxClients  = 64               // in a Pool: more than a cluster has members
	piece       = 32 << 10         // bytes of a snapshot that are sent at a time
	continueFor = 5 * time.Second  // for the other side to ask for a snapshot
)
