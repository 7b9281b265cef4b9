package lock

import "time"

// Level is the newest feature level that this version of the program knows. A
// cluster's level is replicated and raised only when every member knows it; no
// command that is newer than the cluster's level is proposed.
const Level = 1

// MaxHolder bounds Command.Holder in bytes.
const MaxHolder = 64

// MaxKey bounds a key in bytes (docs/PROTOCOL.md, section 4).
const MaxKey = 128

// Kind says what a command asks for.
type Kind uint8

// The numbers stand in logs on disk and in other members' logs: they are never
// given to something else.
const (
	// KindGrant asks for a key.
	KindGrant Kind = 1
	// KindRelease ends the grant of a key by its exact token.
	KindRelease Kind = 2
	// KindMember adds a member, changes one's addresses, or removes one for good.
	KindMember Kind = 3
	// KindLevel raises the feature level. A lower one than the machine's does nothing.
	KindLevel Kind = 4
)

// Command is one thing that an entry asks of the machine.
type Command struct {
	Kind   Kind
	Key    string
	Token  uint64        // KindRelease: the token of the grant to end
	Owner  uint64        // KindGrant: opaque, kept with the grant
	Lease  time.Duration // KindGrant: how long the grant lasts in the machine's time
	Holder string        // KindGrant: who holds it, for people; at most MaxHolder bytes
	Member *Member       // KindMember
	Level  uint32        // KindLevel
}

// Entry is what is applied at once: a time, and commands in order.
//
// A reign is the time in which one leader serves; the machine counts them from 1.
// Elapsed is how much monotonic time of the reign has passed when the entry is
// sealed. The machine adds the difference to the reign's entry before; the entry
// that begins a reign adds nothing, and neither does an entry of any reign but the
// machine's. So the machine's time never runs ahead of real time, whatever leaders
// do, and no lease is cut short.
type Entry struct {
	// First, when not 0, says that the entry begins a reign. The machine numbers
	// it; Reign is not looked at. When the machine's tokens never began, First is
	// the first token: the leader's Unix microseconds (docs/PROTOCOL.md, section 3).
	// After Machine.Recover it is so once more, above all that was left out.
	First    uint64
	Reign    uint64
	Elapsed  time.Duration // not negative
	Commands []Command
}

// Status is the outcome of one command.
type Status uint8

const (
	// Granted: the key is granted, by the token in the result.
	Granted Status = iota + 1
	// Held: the key has a current grant. Nothing happened.
	Held
	// Exhausted: there is no token to grant, since every one was granted or no
	// reign has begun yet. Nothing happened. Once every token was granted no key
	// ever is again; releases go on.
	Exhausted
	// Released: the grant with that token was current and has ended.
	Released
	// NotCurrent: the key has no current grant with that token. Nothing happened.
	NotCurrent
	// Quiet: nothing is granted yet after a restore or recovery (Machine.Recover).
	// Nothing happened; releases go on.
	Quiet
	// Done: the member or the level is as the command says.
	Done
	// Refused: the member is malformed, one too many, or its id was removed
	// before. Nothing happened.
	Refused
)

// Result is the outcome of one command.
type Result struct {
	Status Status
	Token  uint64        // of a grant that was made
	Held   time.Duration // how long a grant had lasted that was released
}

// Outcome is what applying an entry did.
type Outcome struct {
	// Reign is the machine's after the entry: that of the entry, when it began one.
	Reign uint64
	// Now is the machine's time at the entry.
	Now time.Duration
	// Index and Term are the entry's in the log. Who applies it sets them; 0 without a log.
	Index, Term uint64
	// Results has one result a command, in order.
	Results []Result
	// Ended has the grants whose lease ran out and that this entry took out of
	// the table. No command released them.
	Ended []Grant
}

// Grant is one holding of a key.
type Grant struct {
	Key      string
	Token    uint64
	Owner    uint64
	Deadline time.Duration // when its lease runs out, in the machine's time
	Lease    time.Duration // how long it was granted for
	Holder   string        // who holds it, for people
}
