package service

import (
	"time"

	"github.com/ticketing-io/ticketing/core/internal/due"
)

// state says where an acquire stands.
type state uint8

const (
	// arriving: its key was free, so it goes into the next entry. It takes room in
	// the acquire lane.
	arriving state = iota
	// parked: it waits in the key's queue until its wait runs out.
	parked
	// proposed: its grant is in an entry that is under way. It can't time out or
	// be withdrawn any more: its answer is what the entry's outcome says.
	proposed
)

// waiter is an acquire that is not decided yet.
type waiter struct {
	due.Slot // due when its wait runs out; queued while that runs
	session  *Session
	queue    *queue
	owner    uint64
	lease    time.Duration
	asked    time.Duration // when it was parsed
	since    time.Duration // when its wait began: then, or when the node began to serve
	sealed   time.Duration // when its grant was put into an entry, the last time; 0 if it never was
	until    time.Duration // when its wait runs out; when it began if it is an immediate attempt
	position int           // acquires before it in its queue when it came
	state    state
	lane     bool // it takes room in the acquire lane

	prev, next               *waiter // in its queue
	sessionPrev, sessionNext *waiter // in its session

	arrived                  bool // it is in Service.arrivals
	arrivalPrev, arrivalNext *waiter
}

// queue is a key for which an acquire is not decided. Keys that are held and that
// nobody waits for have none. Its first acquire waits for one thing: the end of
// the key's grant, the next entry, or the outcome of the one that is under way.
type queue struct {
	due.Slot   // due when the key's grant ends; in Service.behind while the first waits for that
	key        string
	head, tail *waiter // first come, first served; a proposed waiter is in none
	parked     int     // waiters that count against the limits
	proposed   *waiter // the one whose grant is under way, if any
	held       bool    // the key has a grant, as far as outcomes have told
	freed      End     // how its last grant ended, until the next one is made; kept for the observer alone

	ready                bool // in Service.ready: its first goes into the next entry
	readyPrev, readyNext *queue
}

func (q *queue) pushBack(w *waiter) {
	w.prev, w.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = w
	} else {
		q.head = w
	}
	q.tail = w
}

func (q *queue) pushFront(w *waiter) {
	w.prev, w.next = nil, q.head
	if q.head != nil {
		q.head.prev = w
	} else {
		q.tail = w
	}
	q.head = w
}

func (q *queue) unlink(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	w.prev, w.next = nil, nil
}

func (q *queue) empty() bool { return q.head == nil && q.proposed == nil }

// len returns how many acquires are in the queue or under way.
func (q *queue) len() int {
	n := q.parked
	if q.proposed != nil || q.head != nil && q.head.state == arriving {
		n++
	}
	return n
}

// readyList lists queues in the order in which their keys became free. One that
// empties meanwhile is taken out at once: however long an entry is under way,
// what waits for the next one is bounded by the acquires that do.
type readyList struct {
	head, tail *queue
	len        int
}

func (l *readyList) pushBack(q *queue) {
	q.ready, q.readyPrev, q.readyNext = true, l.tail, nil
	if l.tail != nil {
		l.tail.readyNext = q
	} else {
		l.head = q
	}
	l.tail = q
	l.len++
}

func (l *readyList) remove(q *queue) {
	if q.readyPrev != nil {
		q.readyPrev.readyNext = q.readyNext
	} else {
		l.head = q.readyNext
	}
	if q.readyNext != nil {
		q.readyNext.readyPrev = q.readyPrev
	} else {
		l.tail = q.readyPrev
	}
	q.ready, q.readyPrev, q.readyNext = false, nil, nil
	l.len--
}

// addQueue adds the queue of a key that has none.
func (s *Service) addQueue(key string, held bool) *queue {
	q := s.spare
	s.spare = nil
	if q == nil {
		q = new(queue)
	}
	q.key, q.held, q.freed = key, held, End{}
	s.queues[key] = q
	if !held {
		s.unheld++
	}
	return q
}

// setHeld notes whether the key has a grant, for the count of active keys.
func (s *Service) setHeld(q *queue, held bool) {
	if q.held == held {
		return
	}
	q.held = held
	if held {
		s.unheld--
	} else {
		s.unheld++
	}
}

// forget drops the queue of a key that nobody waits for.
func (s *Service) forget(q *queue) {
	if !q.empty() {
		return
	}
	delete(s.queues, q.key)
	s.behind.Remove(q)
	if q.ready {
		s.ready.remove(q)
	}
	if !q.held {
		s.unheld--
	}
	s.spare = q
}

// waitBehind notes that the key's first waiter waits for the end of its grant. The
// order is the machine's.
func (s *Service) waitBehind(q *queue, token uint64, deadline time.Duration) {
	s.behind.Add(q, deadline, token)
}

// markReady notes that the key is free, or will be by the commands and the time of
// the next entry, so its first waiter goes into that.
func (s *Service) markReady(q *queue) {
	if !q.ready && q.proposed == nil && q.head != nil {
		s.behind.Remove(q)
		s.ready.pushBack(q)
	}
}

// arrive puts an acquire of a free key into the next entry.
func (s *Service) arrive(q *queue, w *waiter) {
	w.queue, w.state, w.lane = q, arriving, true
	s.acquiring++
	w.session.add(w)
	q.pushBack(w)
	s.markReady(q)
}

// park lets an acquire wait in its key's queue.
func (s *Service) park(q *queue, w *waiter) {
	w.queue, w.position = q, q.len()
	w.session.add(w)
	q.pushBack(w)
	s.setParked(w)
}

func (s *Service) setParked(w *waiter) {
	w.state = parked
	s.lengths.change(w.queue.parked, w.queue.parked+1)
	w.queue.parked++
	s.parked++
	s.arrivals.add(w)
	s.waits.Add(w, w.until, uint64(w.since))
}

// unpark ends what parking counted, and the wait.
func (s *Service) unpark(w *waiter) {
	if w.state == parked {
		s.lengths.change(w.queue.parked, w.queue.parked-1)
		w.queue.parked--
		s.parked--
	}
	s.waits.Remove(w)
}

// withdraw takes an acquire that is not proposed out of its queue. Its session's
// list is the caller's.
func (s *Service) withdraw(w *waiter) {
	q := w.queue
	s.unpark(w)
	s.leaveLane(w)
	q.unlink(w)
	s.forget(q)
}

func (s *Service) leaveLane(w *waiter) {
	if w.lane {
		w.lane = false
		s.acquiring--
	}
}

// refuse answers an acquire that is not proposed, and takes it out.
func (s *Service) refuse(w *waiter, outcome Outcome, why Refusal) {
	w.session.remove(w)
	s.withdraw(w)
	s.answerAcquire(w, Answer{Outcome: outcome, Key: w.queue.key, Owner: w.owner}, why)
}
