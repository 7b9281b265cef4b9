package service

// probe is a release of token 0 that waits for the session's grants under way.
type probe struct {
	session *Session
	key     string
}

// probe answers a release of token 0 behind the session's grants that are under
// way when it comes, and before any later one. How many are held, is bounded by who
// asks (HeldProbes).
func (s *Service) probe(c *Session, key string) {
	p := probe{session: c, key: key}
	if c.pending == 0 {
		s.answerProbe(p)
		return
	}
	c.probes.Add(1)
	s.probes = append(s.probes, p)
}

func (s *Service) answerProbe(p probe) {
	s.deliver(p.session, Answer{Outcome: NotCurrent, Key: p.key})
}

// answerProbes answers those that the entry under way held back.
func (s *Service) answerProbes() {
	for _, p := range s.probes {
		s.answerProbe(p)
	}
	s.dropProbes()
}

func (s *Service) dropProbes() {
	for _, p := range s.probes {
		p.session.probes.Add(-1)
	}
	clear(s.probes)
	s.probes = s.probes[:0]
}
