package service

import (
	"math"
	"time"
)

// never is when a timer with nothing to wait for looks again.
const never = time.Duration(math.MaxInt64)

// runTimer ends waits and leases when their time has come. There is one timer for
// all: the first thing that is due.
func (s *Service) runTimer() {
	defer close(s.done)
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		timer.Reset(s.tick())
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.stop:
			return
		}
	}
}

// tick does what is due, a bounded round of it, and returns how long there is to
// wait for more. Leases come before waits: a waiter whose wait and whose
// predecessor's lease end in the same instant is granted.
func (s *Service) tick() time.Duration {
	s.mu.Lock()
	defer s.unlock()
	now := s.now()
	if s.standing == elected && now >= s.patience {
		s.standing = stalled
		s.room.Broadcast()
	}
	s.pump(1, now)
	if s.busy || !s.hasWork(now) {
		s.endWaits(now)
	}
	s.armed = s.nextDue(now)
	if s.armed == never {
		return never
	}
	return max(0, s.armed-s.now())
}

// endWaits answers waiters whose wait has run out, first due first.
func (s *Service) endWaits(now time.Duration) {
	for range maxRound {
		w, ok := s.waits.First()
		if !ok || w.DueAt() > now {
			return
		}
		s.refuse(w, TimedOut, 0)
	}
}

// nextDue returns when the timer has something to do.
func (s *Service) nextDue(now time.Duration) time.Duration {
	next := never
	if at, ok := s.waits.Next(); ok {
		next = at
	}
	if s.standing == elected {
		return min(next, s.patience)
	}
	if s.standing != serving || s.busy {
		return next // Lead, or Next behind the entry under way, goes on with the rest
	}
	if s.pressing() {
		return min(next, now)
	}
	if at, ok := s.nextEntry(); ok {
		next = min(next, at)
	}
	return next
}

// arm wakes the timer goroutine when something is due before it looks again.
func (s *Service) arm() {
	due := s.nextDue(0)
	if due >= s.armed {
		return
	}
	s.armed = due
	select {
	case s.wake <- struct{}{}:
	default: // it has been woken and has not looked yet
	}
}
