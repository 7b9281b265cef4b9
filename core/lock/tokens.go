package lock

import "math"

// tokens counts the tokens: strictly rising, never wrapping.
//
// They begin at a leader's wall clock in microseconds, and a cluster grants fewer
// than one a microsecond. So a token, what was jumped taken off, is never above the
// clock, and of two clusters that jumped alike the later one has the higher tokens:
// those never meet, though both may go on from the same old state. With another jump
// more or less between them they are two years apart.
type tokens struct {
	begun  bool
	used   bool   // one was granted
	lost   bool   // some may have been granted and lost: the next reign begins anew
	jumped uint64 // how many were left out in all
	last   uint64 // the last one granted or left out; never below jumped
}

// begin makes a reign's First the beginning, above what was jumped, if none ever
// was or a new one is due.
func (t *tokens) begin(first uint64) {
	if t.begun && !t.lost {
		return
	}
	t.begun, t.lost = true, false
	t.last = max(t.last, above(first-1, t.jumped))
}

// next returns the token of the next grant, 0 for none.
func (t *tokens) next() uint64 {
	if !t.begun || t.last == MaxToken {
		return 0
	}
	return t.last + 1
}

func (t *tokens) take() (uint64, bool) {
	token := t.next()
	if token == 0 {
		return 0, false
	}
	t.last, t.used = token, true
	return token, true
}

// lose leaves tokens out in place of those that may have been granted and lost.
func (t *tokens) lose() {
	t.lost = true
	t.jumped, t.last = above(t.jumped, TokenJump), above(t.last, TokenJump)
}

// adopt goes on above the tokens of a file, with as much jumped as there.
func (t *tokens) adopt(file *tokens) {
	jumped := max(t.jumped, file.jumped)
	t.last = max(above(t.last, jumped-t.jumped), file.last)
	t.jumped = jumped
	t.begun, t.used, t.lost = t.begun || file.begun, t.used || file.used, t.lost || file.lost
}

// above returns a + n, or MaxToken when that is less: what is above the last token
// is none.
func above(a, n uint64) uint64 {
	if n > math.MaxUint64-a {
		return MaxToken
	}
	return a + n
}
