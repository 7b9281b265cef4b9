package lock

import "time"

// TokenJump is how many tokens are left out at each restore and recovery, in place
// of those that may have been granted and lost: 22 years of 100,000 grants a
// second. A hundred of them pass before a token no longer fits in 53 bits, 262,144
// before there are none left.
const TokenJump = 1 << 46

// Recover makes a machine that may have lost committed grants safe to go on from,
// as after a restore from a file and after a recovery without a quorum. It leaves
// out TokenJump tokens, and the next reign is a new beginning for them, so that none
// is granted twice. It grants nothing before the given time has passed under
// leaders, so that no key is held twice: a lost grant has ended by then. A quiet
// period under way is kept when it ends later. With quiet 0 there is none, and one
// under way ends: that waives it.
func (m *Machine) Recover(quiet time.Duration) {
	m.tokens.lose()
	if quiet <= 0 {
		m.clock.quiet = 0
		return
	}
	m.clock.quiet = max(m.clock.quiet, m.clock.now+min(quiet, maxLease))
}

// Adopt makes m, the state of a cluster, take over what a restore takes of a
// snapshot file: its grants, its time and its count of tokens, unless that of m
// is further on. What m granted is forgotten. Members, reign, elapsed time of the
// reign and level stay those of m: the next entry of its reign adds the time since
// the one before and nothing else. A quiet period ends when that of both has
// passed. The file must not be used any more.
func (m *Machine) Adopt(file *Machine) {
	quiet := max(m.clock.quiet-m.clock.now, file.clock.quiet-file.clock.now)
	m.clock.now, m.clock.quiet = file.clock.now, 0
	if quiet > 0 {
		m.clock.quiet = m.clock.now + quiet
	}
	m.tokens.adopt(&file.tokens)
	m.grants, m.leases = file.grants, file.leases
}
