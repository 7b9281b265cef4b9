package client

// table finds the calls that were sent on a session by the number that comes back
// with their replies: the owner, or the token. Numbers of calls in flight are close
// together, so that each finds its own place free, nearly always; a map would hash
// them. It is open addressing with linear probing, at most half full.
type table struct {
	slots []entry // a power of two of them, or none
	n     int
}

type entry struct {
	number uint64
	call   *call // nil: free
}

// tableSize is how many slots a table begins with.
const tableSize = 64

func (t *table) get(number uint64) *call {
	if t.n == 0 {
		return nil
	}
	for i := t.home(number); t.slots[i].call != nil; i = t.after(i) {
		if t.slots[i].number == number {
			return t.slots[i].call
		}
	}
	return nil
}

// set puts c under number, in the place of what was there.
func (t *table) set(number uint64, c *call) {
	if 2*t.n >= len(t.slots) {
		t.grow()
	}
	i := t.home(number)
	for ; t.slots[i].call != nil; i = t.after(i) {
		if t.slots[i].number == number {
			t.slots[i].call = c
			return
		}
	}
	t.slots[i] = entry{number, c}
	t.n++
}

// remove takes out what is under number, if anything. What follows moves up, so that
// no search ends before it.
func (t *table) remove(number uint64) {
	if t.n == 0 {
		return
	}
	i := t.home(number)
	for ; t.slots[i].number != number || t.slots[i].call == nil; i = t.after(i) {
		if t.slots[i].call == nil {
			return
		}
	}
	t.n--
	for hole := i; ; {
		t.slots[hole] = entry{}
		for i = t.after(i); ; i = t.after(i) {
			if t.slots[i].call == nil {
				return
			}
			// It may move into the hole unless its home lies behind the hole.
			if home := t.home(t.slots[i].number); t.distance(home, i) >= t.distance(hole, i) {
				break
			}
		}
		t.slots[hole] = t.slots[i]
		hole = i
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]entry, max(tableSize, 2*len(old)))
	t.n = 0
	for _, e := range old {
		if e.call != nil {
			t.set(e.number, e.call)
		}
	}
}

func (t *table) home(number uint64) int    { return int(number) & (len(t.slots) - 1) }
func (t *table) after(i int) int           { return (i + 1) & (len(t.slots) - 1) }
func (t *table) distance(from, to int) int { return (to - from) & (len(t.slots) - 1) }
