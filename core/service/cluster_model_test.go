package service

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ticketing-io/ticketing/core/lock"
)

// standingModel is what the model of a slow service knows of where the node stands.
type standingModel struct {
	standing standing
	leader   string
	patience time.Duration
	sealed   time.Duration // when the last entry was
	doubt    bool          // an entry was lost, and none was applied since
	lost     []*lock.Entry // that may yet be applied, before the next one
	lenient  bool          // an entry may lack what has just been asked

	// The one request that waits for an elected node.
	waiting  *client
	acquires bool
	request  func() // notes it anew

	ended map[*client]bool
	maybe map[*client]string // a word that a session is told or not, as chance has it
}

// open opens a session and notes what it is told.
func (m *slowModel) open() *client {
	c := m.w.open()
	if at := m.place.standing; m.place.leader != "" && (at == serving || at == following) {
		m.tell(c, "L %s", m.place.leader)
	}
	return c
}

// ask calls the service, from another goroutine when it will wait.
func (m *slowModel) ask(c *client, acquires bool, call func()) {
	if m.place.waiting == c {
		m.place.acquires = acquires
		go func() {
			call()
			c.Flush()
		}()
	} else {
		call()
		c.Flush()
	}
	synctest.Wait()
}

// turnedAway notes a request of a session that the node does not serve now. The
// function notes it anew when it is served after all.
func (m *slowModel) turnedAway(c *client, again func()) bool {
	switch m.place.standing {
	case serving:
		return false
	case elected:
		m.place.waiting, m.place.request = c, again
	case stalled:
		m.end(c, "E not_active")
	default:
		m.end(c, m.farewell())
	}
	return true
}

// farewell is how a session is ended that asked something of this node.
func (m *slowModel) farewell() string {
	switch {
	case m.place.standing == following && m.place.leader != "":
		return "M " + m.place.leader
	case m.draining:
		return "E not_active"
	}
	return "E no_leader"
}

func (m *slowModel) end(c *client, word string) {
	if c != nil && !c.left && !m.place.ended[c] {
		m.place.ended[c] = true
		m.tell(c, "%s", word)
	}
}

func (m *slowModel) commit(e *lock.Entry) {
	m.applyLost(true)
	m.w.commit(func(out *lock.Outcome) { m.committed(e, out) })
}

// applyLost has the entries that were lost applied, or never.
func (m *slowModel) applyLost(applied bool) {
	for _, e := range m.place.lost {
		if !applied {
			continue
		}
		out, _ := m.w.slow.Proposer.Propose(e)
		for _, r := range out.Results {
			if r.Status == lock.Granted {
				m.foreign[r.Token] = true // the key's next waiter may be ready already
			}
		}
	}
	m.place.lost = nil
}

// forget notes that the outcome of the entry under way is not told. It returns whose
// sessions that ends, and the releases that the service asks again.
func (m *slowModel) forget() (owing []*client, own []*slowRelease) {
	for key, a := range m.underWay {
		owing = append(owing, a.client)
		delete(m.underWay, key)
	}
	for _, r := range m.sealed {
		if r.client == nil {
			own = append(own, r)
		} else {
			owing = append(owing, r.client)
		}
	}
	m.sealed, m.probes = nil, nil
	return owing, own
}

func (m *slowModel) endAll(clients []*client) {
	for _, c := range clients {
		m.end(c, m.farewell())
	}
}

// lose: the outcome of the entry under way is lost. It was applied, or will be before
// the next one, or never is.
func (m *slowModel) lose(t *rapid.T) {
	if m.w.slow.underWay == nil {
		t.Skip("nothing is under way")
	}
	owing, own := m.forget()
	m.endAll(owing)
	m.releases = append(m.releases, own...)
	m.place.doubt = true
	switch rapid.SampledFrom([]string{"never", "now", "later"}).Draw(t, "applied") {
	case "now":
		m.applyLost(true)
		m.w.lose(true)
	case "later":
		m.place.lost = append(m.place.lost, m.w.slow.underWay)
		m.w.lose(false)
	default:
		m.w.lose(false)
	}
}

// refuse: the entry under way was certainly not proposed.
func (m *slowModel) refuse(t *rapid.T) {
	if m.w.slow.underWay == nil {
		t.Skip("nothing is under way")
	}
	for key, a := range m.underWay {
		m.tell(a.client, "B %s owner=%d", key, a.owner)
		delete(m.underWay, key)
	}
	for _, p := range m.probes {
		m.tell(p.client, "N %s token=0", p.key)
	}
	m.probes = nil
	owing, own := m.forget()
	m.endAll(owing)
	m.releases = append(m.releases, own...)
	m.w.refuse()
}

// stopServing: the node does not serve any more, if it did.
func (m *slowModel) stopServing(to standing, leader string, clients []*client) {
	was := m.place
	m.place.standing, m.place.leader = to, leader
	var owing []*client
	if was.standing == serving {
		owing, _ = m.forget()
		for _, r := range m.releases {
			if r.client != nil {
				owing = append(owing, r.client)
			}
		}
		m.releases, m.place.doubt = nil, false
		m.refuseAll()
		m.endAll(owing)
	}
	if c := was.waiting; c != nil {
		m.place.waiting, m.place.request = nil, nil
		m.end(c, m.farewell())
		if leader != "" {
			m.place.maybe[c] = fmt.Sprintf("%v L %s", m.now(), leader)
		}
	}
	if leader != "" && (leader != was.leader || to != was.standing) {
		m.tellAll(clients, leader)
	}
}

// tellAll notes that all sessions are told of the leader.
func (m *slowModel) tellAll(clients []*client, leader string) {
	for _, c := range clients {
		if !m.place.ended[c] {
			m.tell(c, "L %s", leader)
		}
	}
}

func (m *slowModel) follow(t *rapid.T, clients []*client) {
	leader := rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "leader")
	applied := rapid.Bool().Draw(t, "applied")
	m.stopServing(following, leader, clients)
	m.applyLost(applied)
	m.w.step(applied, func() { m.w.s.Follow(leader) })
}

func (m *slowModel) elect(t *rapid.T, clients []*client) {
	applied := rapid.Bool().Draw(t, "applied")
	if m.place.standing == elected || m.place.standing == stalled {
		m.w.s.Elected()
		return
	}
	m.stopServing(elected, "", clients)
	m.place.patience = m.now() + ElectedPatience
	m.applyLost(applied)
	m.w.step(applied, m.w.s.Elected)
}

// lead: the node serves. Whoever waited for that is served.
func (m *slowModel) lead(clients []*client, addr string) {
	if m.place.standing != serving || m.place.leader != addr {
		m.tellAll(clients, addr)
	}
	if m.place.standing != serving {
		m.place.sealed = m.now()
	}
	m.place.standing, m.place.leader = serving, addr
	if request := m.place.request; request != nil {
		m.place.waiting, m.place.request = nil, nil
		request()
		m.place.lenient = true
	}
	m.w.s.Lead(addr)
	synctest.Wait()
	m.place.lenient = false
}

// patienceEnds notes that a node was elected for too long, if it was by then.
func (m *slowModel) patienceEnds(at time.Duration) {
	if m.place.standing != elected || at < m.place.patience {
		return
	}
	m.place.standing = stalled
	if c := m.place.waiting; c != nil {
		m.place.waiting, m.place.request = nil, nil
		m.end(c, "E not_active")
	}
}

// Whatever sessions ask and however leadership comes and goes, whatever becomes of
// entries whose outcome is lost or that are refused: no waiter is lost. Each acquire is
// answered or its session is ended, by the rules, in the order of its leader's queue.
func TestServiceOfACluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			w := newCluster(t, DefaultLimits(), nil)
			m := newSlowModel(w)
			m.place.ended, m.place.maybe = make(map[*client]bool), make(map[*client]string)
			clients := []*client{w.open(), w.open(), w.open()}
			m.lead(clients, "self")
			actions := m.actions(clients)
			for name, act := range actions {
				actions[name] = func(t *rapid.T) {
					if m.place.waiting != nil && slices.Contains([]string{"acquire", "acquire ", "release", "release ", "probe"}, name) {
						t.Skip("a request waits")
					}
					act(t)
				}
			}
			actions["follow"] = func(t *rapid.T) { m.follow(t, clients) }
			actions["elected"] = func(t *rapid.T) { m.elect(t, clients) }
			for _, name := range []string{"lead", "lead "} {
				actions[name] = func(t *rapid.T) {
					m.lead(clients, rapid.SampledFrom([]string{"self", "self", "renamed"}).Draw(t, "addr"))
				}
			}
			actions["lose"] = m.lose
			actions["refuse"] = m.refuse
			actions[""] = func(t *rapid.T) {
				m.check(t, clients)
				for i, c := range clients {
					if m.place.ended[c] {
						m.leave(c)
						c.leave()
						clients[i] = m.open()
					}
				}
				m.check(t, clients)
			}
			t.Repeat(actions)
			m.lead(clients, "self")
			m.finish(t, clients)
			if n := w.s.Gathered(); n != 0 {
				t.Fatalf("%d commands wait for the next entry", n)
			}
		})
	})
}
