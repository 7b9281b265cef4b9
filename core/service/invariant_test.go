package service

import "fmt"

// check says what is wrong with the service, if anything: every acquire that is
// not decided waits for exactly one thing that will come, and every count is right.
func (s *Service) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := census{pending: make(map[*Session]int)}
	for key, q := range s.queues {
		if err := c.countQueue(q); err != nil {
			return fmt.Errorf("queue of %q: %w", key, err)
		}
	}
	for q := s.ready.head; q != nil; q = q.readyNext {
		c.listed++
		if s.queues[q.key] != q {
			return fmt.Errorf("%q is ready, and has another queue", q.key)
		}
	}
	for _, r := range s.releases {
		c.countRelease(r.session)
	}
	if s.underWay {
		for _, p := range s.proposals {
			if p.waiter == nil {
				c.countRelease(p.session)
			}
		}
	}
	if s.underWay && !s.busy {
		return fmt.Errorf("an entry is under way, and another may be sealed")
	}
	if s.standing != serving && (len(s.queues) > 0 || len(s.releases) > 0 || len(s.probes) > 0 || len(s.orders) > 0 || s.busy || s.doubt) {
		return fmt.Errorf("the node does not serve, and %d queues, %d releases, %d probes, %d orders are left (busy %v, in doubt %v)",
			len(s.queues), len(s.releases), len(s.probes), len(s.orders), s.busy, s.doubt)
	}
	for w := s.arrivals.head; w != nil; w = w.arrivalNext {
		c.arrived++
		if !w.arrived || w.arrivalNext != nil && (w.arrivalNext.arrivalPrev != w || w.arrivalNext.since < w.since) {
			return fmt.Errorf("owner %d is not well linked among the arrivals", w.owner)
		}
	}
	if len(s.owing) > 0 {
		return fmt.Errorf("%d sessions are still to be ended", len(s.owing))
	}
	if err := s.checkListed(); err != nil {
		return err
	}
	for _, n := range []struct {
		what      string
		got, want int
	}{
		{"queues of free keys", s.unheld, c.unheld},
		{"queues behind a grant", s.behind.Len(), c.behind},
		{"ready queues", s.ready.len, c.ready},
		{"queues in the ready list", c.listed, c.ready},
		{"parked waiters", s.parked, c.parked},
		{"waiters of the longest queue", s.lengths.longest, c.longest},
		{"acquires that were parked", c.arrived, c.wereParked},
		{"waits that run", s.waits.Len(), c.waits},
		{"acquires in flight", s.acquiring, c.lane},
		{"releases in flight", s.releasing, c.releases},
	} {
		if n.got != n.want {
			return fmt.Errorf("%d %s, counted %d", n.got, n.what, n.want)
		}
	}
	return c.checkSessions()
}

// checkListed checks the list of sessions, each of which was told the latest.
func (s *Service) checkListed() error {
	held := make(map[*Session]int)
	for _, p := range s.probes {
		held[p.session]++
	}
	for c := s.sessions.head; c != nil; c = c.next {
		switch {
		case c.next != nil && c.next.prev != c || c.next == nil && s.sessions.tail != c:
			return fmt.Errorf("the list of sessions is not well linked")
		case c.closed:
			return fmt.Errorf("a session that has left is listed")
		case c.news != s.news:
			return fmt.Errorf("a session was not told of the leader")
		case c.HeldProbes() != held[c]:
			return fmt.Errorf("a session counts %d held probes, has %d", c.HeldProbes(), held[c])
		}
	}
	return nil
}

// census counts again what the service keeps count of.
type census struct {
	unheld, behind, ready, listed, parked, waits, lane, releases int
	longest, arrived, wereParked                                 int

	waiters []*waiter
	pending map[*Session]int // grants under way
}

func (c *census) countQueue(q *queue) error {
	waitsFor := 0
	for _, is := range []bool{q.ready, q.Queued(), q.proposed != nil} {
		if is {
			waitsFor++
		}
	}
	if waitsFor != 1 {
		return fmt.Errorf("waits for %d things: ready %v, behind a grant %v, proposed %v", waitsFor, q.ready, q.Queued(), q.proposed != nil)
	}
	if q.empty() {
		return fmt.Errorf("is empty")
	}
	c.unheld += count(!q.held)
	c.behind += count(q.Queued())
	c.ready += count(q.ready)
	parkedBefore := c.parked
	for w := q.head; w != nil; w = w.next {
		if w.next != nil && w.next.prev != w || w.next == nil && q.tail != w {
			return fmt.Errorf("is not well linked at owner %d", w.owner)
		}
		if w.state == proposed || w.state == arriving && w != q.head || w.queue != q {
			return fmt.Errorf("owner %d is in state %d inside it", w.owner, w.state)
		}
		if waits := w.until > w.since; waits != w.Queued() {
			return fmt.Errorf("owner %d waits: %v, its time runs: %v", w.owner, waits, w.Queued())
		}
		c.parked += count(w.state == parked)
		if w.state == parked && !w.arrived {
			return fmt.Errorf("owner %d is parked, and not among the arrivals", w.owner)
		}
		c.countWaiter(w)
	}
	if q.parked != c.parked-parkedBefore {
		return fmt.Errorf("counts %d waiters and has %d", q.parked, c.parked-parkedBefore)
	}
	c.longest = max(c.longest, q.parked)
	if w := q.proposed; w != nil {
		if w.state != proposed || w.Queued() {
			return fmt.Errorf("owner %d is under way in state %d, its time runs: %v", w.owner, w.state, w.Queued())
		}
		c.pending[w.session]++
		c.countWaiter(w)
	}
	return nil
}

func (c *census) countWaiter(w *waiter) {
	c.waiters = append(c.waiters, w)
	c.waits += count(w.Queued())
	c.wereParked += count(w.arrived)
	c.lane += count(w.lane)
}

func (c *census) countRelease(session *Session) { c.releases += count(session != nil) }

// checkSessions checks that each session knows its acquires.
func (c *census) checkSessions() error {
	known := make(map[*waiter]bool)
	for _, w := range c.waiters {
		for o := w.session.first; o != nil; o = o.sessionNext {
			if o.sessionNext != nil && o.sessionNext.sessionPrev != o {
				return fmt.Errorf("the session of owner %d is not well linked", w.owner)
			}
			known[o] = true
		}
	}
	for _, w := range c.waiters {
		switch {
		case w.session.closed && w.state != proposed:
			return fmt.Errorf("owner %d waits, and its session has left", w.owner)
		case !w.session.closed && !known[w]:
			return fmt.Errorf("the session of owner %d does not know it", w.owner)
		case w.session.pending != c.pending[w.session]:
			return fmt.Errorf("the session of owner %d counts %d grants under way, has %d", w.owner, w.session.pending, c.pending[w.session])
		}
		delete(known, w)
	}
	for w := range known {
		return fmt.Errorf("a session still has owner %d, which is decided", w.owner)
	}
	return nil
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
