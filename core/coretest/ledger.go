package coretest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/lock"
)

// maxFaults bounds how many broken promises a ledger keeps: the first ones tell.
const maxFaults = 20

// Tenure is one grant as the nodes applied it, from its entry to the one that ended it.
type Tenure struct {
	Key      string
	Token    uint64
	Owner    uint64
	Lease    time.Duration
	Begun    time.Duration // when a node first applied it
	Ended    time.Duration // when a node first applied its end; 0 while it lasts
	Released bool          // it ended by a release, not by its lease

	sealedAfter time.Duration // its lease can't have begun before
	gaps        time.Duration // time between the reigns before it
	endSealed   time.Duration // the entry that ended its lease was sealed before
}

// entry is one committed entry.
type entry struct {
	data    []byte
	outcome lock.Outcome
	at      time.Duration // when a node first applied it
	digest  [32]byte      // of the machine after it
}

// Ledger is what the nodes applied. It holds every node to the first one that applied an
// entry, and keeps a machine and a list of tenures of its own.
type Ledger struct {
	history *History
	stored  *arrivals
	durable func(index uint64, data []byte) error // whether a majority has it on disk

	mu      sync.Mutex
	entries map[uint64]*entry
	last    uint64 // index
	machine *lock.Machine
	reigned time.Duration // when the last entry of any reign was applied
	sealed  time.Duration // when the one before was: the last one can't have been sealed before
	gaps    time.Duration // time between reigns so far
	reigns  int
	began   time.Duration      // when the first reign's first entry was sealed
	token   uint64             // the greatest granted
	open    map[string]*Tenure // by key
	owners  map[uint64]*Tenure // by the acquire that was granted
	tenures []*Tenure
	faults  []error

	restoring bool              // the next state that nobody was in is a restored one
	restored  map[[32]byte]bool // states that restores have brought
}

// NewLedger returns an empty ledger. durable says whether an entry that is about to be
// applied for the first time is on the disks of a majority.
func NewLedger(h *History, durable func(index uint64, data []byte) error) *Ledger {
	return &Ledger{
		history: h, durable: durable,
		stored:   &arrivals{began: h.began, times: make(map[arrival]time.Duration)},
		entries:  make(map[uint64]*entry),
		machine:  lock.New(),
		open:     make(map[string]*Tenure),
		owners:   make(map[uint64]*Tenure),
		restored: make(map[[32]byte]bool),
	}
}

// arrivals is when each entry first came onto a disk: it was sealed before.
type arrivals struct {
	began time.Time
	mu    sync.Mutex
	times map[arrival]time.Duration
}

type arrival struct {
	index uint64
	data  string
}

func (a *arrivals) note(l *raft.Log) {
	if l.Type != raft.LogCommand {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := arrival{l.Index, string(l.Data)}
	if _, ok := a.times[key]; !ok {
		a.times[key] = time.Since(a.began)
	}
}

func (a *arrivals) of(index uint64, data []byte) (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.times[arrival{index, string(data)}]
	return at, ok
}

func (l *Ledger) fault(format string, args ...any) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Errorf("%12v: "+format, append([]any{time.Since(l.history.began)}, args...)...))
	}
}

// Fault notes a broken promise that the ledger does not see itself.
func (l *Ledger) Fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault(format, args...)
}

// Err returns what was wrong so far.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.faults...)
}

// Tenures returns a copy of all tenures, in the order of their tokens.
func (l *Ledger) Tenures() []Tenure {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Tenure, len(l.tenures))
	for i, t := range l.tenures {
		list[i] = *t
	}
	return list
}

// Open returns the tenures that last.
func (l *Ledger) Open() (list []Tenure) {
	for _, t := range l.Tenures() {
		if t.Ended == 0 {
			list = append(list, t)
		}
	}
	return list
}

// Reigns returns how many reigns have begun.
func (l *Ledger) Reigns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reigns
}

// Now returns the machine's time.
func (l *Ledger) Now() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Now()
}

// Applied takes what a node applied.
func (l *Ledger) Applied(node string, index uint64, e *lock.Entry, out *lock.Outcome) {
	data := lock.AppendEntry(nil, e)
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.entries[index]
	switch {
	case first != nil && !bytes.Equal(first.data, data):
		l.fault("%s applied another entry %d than a node before", node, index)
	case first != nil && !sameOutcome(&first.outcome, out):
		l.fault("%s came to another outcome of entry %d: %+v, before %+v", node, index, *out, first.outcome)
	case first != nil:
	case index < l.last:
		l.fault("%s applied entry %d, which nobody had when entry %d was applied", node, index, l.last)
	default:
		l.append(node, index, data, e, out)
	}
}

func sameOutcome(a, b *lock.Outcome) bool {
	return a.Reign == b.Reign && slices.Equal(a.Results, b.Results) && slices.Equal(a.Ended, b.Ended)
}

// append takes an entry that no node applied before.
func (l *Ledger) append(node string, index uint64, data []byte, e *lock.Entry, out *lock.Outcome) {
	at := time.Since(l.history.began)
	if err := l.durable(index, data); err != nil {
		l.fault("%s applied entry %d, but %v", node, index, err)
	}
	var own lock.Outcome
	before := l.machine.Reign()
	l.machine.Apply(e, &own)
	if !sameOutcome(&own, out) {
		l.fault("%s came to another outcome of entry %d than its machine: %+v, want %+v", node, index, *out, own)
	}
	if now := l.machine.Now(); l.reigns > 0 && now > at-l.began {
		l.fault("entry %d takes the machine's time to %v, and %v have passed", index, now, at-l.began)
	}
	if e.First != 0 {
		if l.reigns++; l.reigns == 1 {
			l.began, _ = l.stored.of(index, data) // disks are not slow at the first start
		}
		// A reign's last entry may be committed by the next leader, long after it was
		// sealed, and tells no time after that.
		if before > 0 {
			l.gaps += at - l.sealed
		}
	}
	kept := lock.Outcome{Reign: out.Reign, Results: slices.Clone(out.Results), Ended: slices.Clone(out.Ended)}
	l.entries[index] = &entry{data: data, outcome: kept, at: at, digest: lock.Digest(l.machine)}
	l.last = index

	sealed, ok := l.stored.of(index, data)
	if !ok {
		l.fault("%s applied entry %d, which is on no disk", node, index)
	}
	for i := range out.Ended {
		l.endLease(index, &out.Ended[i], at, sealed)
	}
	// What comes before it in its reign was applied when it was sealed: there is one entry under way.
	sealedAfter := time.Duration(0)
	if e.First != 0 || e.Reign == out.Reign {
		sealedAfter = l.reigned
	}
	for i, r := range out.Results {
		l.result(index, &e.Commands[i], r, at, sealedAfter)
	}
	l.sealed, l.reigned = l.reigned, at
}

// endLease takes a grant that ended by its lease.
func (l *Ledger) endLease(index uint64, g *lock.Grant, at, sealed time.Duration) {
	t := l.open[g.Key]
	if t == nil || t.Token != g.Token {
		l.fault("entry %d ends the lease of %s, token %d, which was not current", index, g.Key, g.Token)
		return
	}
	if sealed-t.sealedAfter < t.Lease {
		l.fault("entry %d ends the lease of %s, token %d, %v after %v at most: it was granted for %v",
			index, g.Key, g.Token, sealed-t.sealedAfter, t.sealedAfter, t.Lease)
	}
	t.endSealed = sealed
	l.end(t, at, false)
}

func (l *Ledger) end(t *Tenure, at time.Duration, released bool) {
	t.Ended, t.Released = at, released
	t.gaps = l.gaps - t.gaps
	delete(l.open, t.Key)
}

func (l *Ledger) result(index uint64, c *lock.Command, r lock.Result, at, sealedAfter time.Duration) {
	t := l.open[c.Key]
	switch r.Status {
	case lock.Granted:
		if t != nil {
			l.fault("entry %d grants %s by token %d, which is held by token %d", index, c.Key, r.Token, t.Token)
		}
		if r.Token <= l.token {
			l.fault("entry %d grants %s by token %d, and %d was granted before", index, c.Key, r.Token, l.token)
		}
		l.token = max(l.token, r.Token)
		l.begin(index, c, r.Token, at, sealedAfter)
	case lock.Held:
		if t == nil {
			l.fault("entry %d refuses %s as held, which is free", index, c.Key)
		}
	case lock.Released:
		if t == nil || t.Token != c.Token {
			l.fault("entry %d releases %s, token %d, which is not current", index, c.Key, c.Token)
			return
		}
		l.end(t, at, true)
	case lock.NotCurrent:
		if g, ok := l.machine.Current(c.Key); ok && g.Token == c.Token && t != nil && t.Token == c.Token && t.Begun < at {
			l.fault("entry %d refuses to release %s, token %d, which is current", index, c.Key, c.Token)
		}
	}
}

func (l *Ledger) begin(index uint64, c *lock.Command, token uint64, at, sealedAfter time.Duration) {
	if asked, ok := l.history.called(c.Owner); ok {
		sealedAfter = max(sealedAfter, asked)
	}
	t := &Tenure{
		Key: strings.Clone(c.Key), Token: token, Owner: c.Owner, Lease: c.Lease, Begun: at,
		sealedAfter: sealedAfter, gaps: l.gaps,
	}
	if twice := l.owners[t.Owner]; twice != nil {
		l.fault("entry %d grants %s to acquire %d, which was granted before by token %d", index, t.Key, t.Owner, twice.Token)
	}
	l.open[t.Key] = t
	l.owners[t.Owner] = t
	l.tenures = append(l.tenures, t)
}

// Saved takes a snapshot that a node has made or was sent: its state must be that behind
// the last entry up to its index.
func (l *Ledger) Saved(node string, index uint64, content []byte) {
	m, err := lock.Read(bytes.NewReader(content))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fault("%s saved a snapshot of entry %d that can't be read: %v", node, index, err)
		return
	}
	for at := index; at > 0; at-- {
		if e := l.entries[at]; e != nil {
			if e.digest != lock.Digest(m) && !l.restored[lock.Digest(m)] && !l.restoring {
				l.fault("%s saved a snapshot of entry %d that is another state than the others'", node, index)
			}
			return
		}
	}
}

// Restored takes the state that a node began from, or was sent: some state that was.
func (l *Ledger) Restored(node string, m *lock.Machine) {
	digest := lock.Digest(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restored[digest] || digest == lock.Digest(l.machine) {
		return
	}
	for _, e := range l.entries {
		if e.digest == digest {
			return
		}
	}
	if !l.restoring {
		l.fault("%s restored a state that no node was in", node)
		return
	}
	l.restoring = false
	l.restored[digest] = true
	l.adopt(m)
}

// ExpectRestore says that an operator is about to restore a snapshot.
func (l *Ledger) ExpectRestore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restoring = true
}

// adopt goes on from a restored state: its grants have what was left of their leases.
func (l *Ledger) adopt(m *lock.Machine) {
	at := time.Since(l.history.began)
	var b bytes.Buffer
	_, err := m.Snapshot().WriteTo(&b)
	if err == nil {
		l.machine, err = lock.Read(&b)
	}
	if err != nil {
		l.fault("a restored state can't be copied: %v", err)
	}
	if next := m.Next(); next <= l.token {
		l.fault("a restore takes the tokens back to %d, and %d was granted", next, l.token)
	}
	l.began = l.sealed - m.Now()
	clear(l.open)
	for _, g := range m.Grants() {
		t := &Tenure{Key: g.Key, Token: g.Token, Owner: g.Owner, Lease: g.Deadline - m.Now(), Begun: at, sealedAfter: l.sealed, gaps: l.gaps}
		l.open[t.Key] = t
		l.tenures = append(l.tenures, t)
	}
}

// CheckLateness says which lease ended later than the protocol allows: its length, the time
// between reigns, and the slack, which covers the commits around it. Its end counts from when
// that was sealed: the entry itself may be committed by the next leader.
func (l *Ledger) CheckLateness(slack time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tenures {
		if late := t.endSealed - t.Begun - t.Lease - t.gaps; t.Ended > 0 && !t.Released && late > slack {
			return fmt.Errorf("%s, token %d, granted at %v for %v, ended at %v: %v late, %v of it between reigns",
				t.Key, t.Token, t.Begun, t.Lease, t.Ended, late+t.gaps, t.gaps)
		}
	}
	return nil
}
