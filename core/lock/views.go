package lock

import "time"

// Current returns the current grant of the key as of the latest entry.
func (m *Machine) Current(key string) (Grant, bool) {
	g := m.grants[key]
	if g == nil || m.ended(g) {
		return Grant{}, false
	}
	return g.export(), true
}

// Len returns how many grants are in the table, ended ones that no entry has
// taken out yet included.
func (m *Machine) Len() int { return len(m.grants) }

// Grants returns a copy of the grants in the table, in no order, ended ones that no
// entry has taken out yet included.
func (m *Machine) Grants() []Grant {
	list := make([]Grant, 0, len(m.grants))
	for _, g := range m.grants {
		list = append(list, g.export())
	}
	return list
}

// Now returns the machine's time as of the latest entry.
func (m *Machine) Now() time.Duration { return m.clock.now }

// Reign returns the number of the latest reign, 0 before the first.
func (m *Machine) Reign() uint64 { return m.clock.reign }

// Elapsed returns how much of the latest reign had passed at its latest entry.
func (m *Machine) Elapsed() time.Duration { return m.clock.elapsed }

// NextDeadline returns when the first lease in the table ends, or the quiet period
// when it ends before that, in the machine's time.
func (m *Machine) NextDeadline() (time.Duration, bool) {
	lease, ok := m.leases.Next()
	quiet, isQuiet := m.QuietUntil()
	if ok && isQuiet {
		return min(lease, quiet), true
	}
	return max(lease, quiet), ok || isQuiet // one of them is 0
}

// QuietUntil returns the machine's time before which nothing is granted (Recover),
// and false when there is none.
func (m *Machine) QuietUntil() (time.Duration, bool) { return m.clock.quiet, m.clock.quiet != 0 }

// Next returns the token of the next grant; 0 when there is none, since every token
// was granted or no reign has begun yet.
func (m *Machine) Next() uint64 { return m.tokens.next() }

// Fresh says whether nothing was ever granted, here or in a state that this one
// was restored or recovered from.
func (m *Machine) Fresh() bool { return !m.tokens.used && m.tokens.jumped == 0 }

// Level returns the replicated feature level.
func (m *Machine) Level() uint32 { return m.level }

// Members returns the members and the ids of removed ones, sorted by id.
func (m *Machine) Members() []Member { return m.members.list() }
