package service

// What Stats tells of waiters without walking any table.

// lengths counts how many queues have how many waiters, to know the longest.
type lengths struct {
	queues  []int // by their length; of length 0 none are counted
	longest int
}

// change notes that a queue has another length, greater or less by one.
func (l *lengths) change(from, to int) {
	for len(l.queues) <= max(from, to) {
		l.queues = append(l.queues, 0)
	}
	if from > 0 {
		l.queues[from]--
	}
	if to > 0 {
		l.queues[to]++
	}
	switch {
	case to > l.longest:
		l.longest = to
	case from == l.longest && l.queues[from] == 0:
		l.longest = to
	}
}

// arrivalList lists the acquires that were parked and are not decided, in the order in
// which they came.
type arrivalList struct{ head, tail *waiter }

// add puts an acquire in its place, unless it is there already. One whose grant was under
// way and refused comes late, by that time at most: others have come since.
func (l *arrivalList) add(w *waiter) {
	if w.arrived {
		return
	}
	w.arrived = true
	before := l.tail
	for before != nil && before.since > w.since {
		before = before.arrivalPrev
	}
	w.arrivalPrev = before
	if before != nil {
		w.arrivalNext, before.arrivalNext = before.arrivalNext, w
	} else {
		w.arrivalNext, l.head = l.head, w
	}
	if w.arrivalNext != nil {
		w.arrivalNext.arrivalPrev = w
	} else {
		l.tail = w
	}
}

func (l *arrivalList) remove(w *waiter) {
	if !w.arrived {
		return
	}
	if w.arrivalPrev != nil {
		w.arrivalPrev.arrivalNext = w.arrivalNext
	} else {
		l.head = w.arrivalNext
	}
	if w.arrivalNext != nil {
		w.arrivalNext.arrivalPrev = w.arrivalPrev
	} else {
		l.tail = w.arrivalPrev
	}
	w.arrived, w.arrivalPrev, w.arrivalNext = false, nil, nil
}
