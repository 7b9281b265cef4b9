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

// slowModel follows a service whose entries take their time. It says what every
// entry has to hold when it is sealed, and what each session is to be told when
// it commits; the machine beneath, which is tested elsewhere, says how commands
// come out.
type slowModel struct {
	w        *world
	acquires map[uint64]*slowAcquire // by owner, all there were
	lines    map[string][]*slowAcquire
	underWay map[string]*slowAcquire // by key
	probes   []*slowRelease          // held back by the entry under way
	releases []*slowRelease          // in no entry yet
	sealed   []*slowRelease          // in the entry under way, in its order
	expect   map[*client][]string
	foreign  map[uint64]bool // tokens of grants from elsewhere
	draining bool
	problem  string // the first that an entry showed

	place standingModel // where the node stands; a single server serves
}

type slowAcquire struct {
	client *client
	owner  uint64
	key    string
	wait   time.Duration
	until  time.Duration
	waits  bool
}

type slowRelease struct {
	client *client // nil: the service's own, of a grant that reached nobody
	key    string
	token  uint64
}

func newSlowModel(w *world) *slowModel {
	m := &slowModel{
		w: w, acquires: make(map[uint64]*slowAcquire), lines: make(map[string][]*slowAcquire),
		underWay: make(map[string]*slowAcquire), expect: make(map[*client][]string),
		foreign: make(map[uint64]bool),
	}
	w.slow.proposed = m.sealedEntry
	return m
}

func (m *slowModel) now() time.Duration { return m.w.s.now() }

func (m *slowModel) current(key string) (lock.Grant, bool) {
	return m.w.slow.Current(key, m.now())
}

func (m *slowModel) tell(c *client, format string, args ...any) {
	if !c.left {
		m.expect[c] = append(m.expect[c], fmt.Sprintf("%v ", m.now())+fmt.Sprintf(format, args...))
	}
}

// acquire notes one before it is asked.
func (m *slowModel) acquire(a *slowAcquire) {
	a.until = m.now() + a.wait
	_, held := m.current(a.key)
	taken := held || len(m.lines[a.key]) > 0 || m.underWay[a.key] != nil
	switch {
	case m.draining:
		m.tell(a.client, "B %s owner=%d", a.key, a.owner)
	case m.turnedAway(a.client, func() { m.acquire(a) }):
	case taken && !a.waits:
		m.tell(a.client, "T %s owner=%d", a.key, a.owner)
	default:
		m.acquires[a.owner] = a
		m.lines[a.key] = append(m.lines[a.key], a)
	}
}

// release notes one before it is asked.
func (m *slowModel) release(r *slowRelease) {
	if m.turnedAway(r.client, func() { m.release(r) }) {
		return
	}
	if r.token != 0 {
		m.releases = append(m.releases, r)
		return
	}
	for _, a := range m.underWay {
		if a.client == r.client {
			m.probes = append(m.probes, r)
			return
		}
	}
	m.tell(r.client, "N %s token=0", r.key)
}

// leave notes that a session is about to. Its acquires that are in no entry are gone.
func (m *slowModel) leave(c *client) {
	c.left = true
	if m.place.waiting == c {
		m.place.waiting, m.place.request = nil, nil
	}
	for key, line := range m.lines {
		m.lines[key] = slices.DeleteFunc(line, func(a *slowAcquire) bool { return a.client == c })
	}
}

// drain notes that the service is about to.
func (m *slowModel) drain() {
	m.draining = true
	m.refuseAll()
	if m.place.waiting != nil && m.place.acquires {
		m.place.request() // it is told B
		m.place.waiting, m.place.request = nil, nil
	}
}

// refuseAll notes that whoever is not proposed is answered Busy.
func (m *slowModel) refuseAll() {
	for key, line := range m.lines {
		for _, a := range line {
			m.tell(a.client, "B %s owner=%d", a.key, a.owner)
		}
		delete(m.lines, key)
	}
}

// sealedEntry checks an entry when it is proposed. It is called with the service's
// lock held, on whatever goroutine.
func (m *slowModel) sealedEntry(e *lock.Entry) {
	m.place.sealed = m.now()
	if m.place.standing != serving {
		m.complain("an entry is sealed by a node that does not serve")
	}
	if e.Elapsed != m.now() {
		m.complain("an entry has the time %v at %v", e.Elapsed, m.now())
	}
	freed := make(map[string]bool)
	m.sealed = nil
	for _, c := range e.Commands {
		if c.Kind == lock.KindRelease {
			m.sealRelease(&c, freed)
		} else {
			m.sealGrant(&c, freed)
		}
	}
	if m.place.lenient {
		return
	}
	if len(m.releases) > 0 {
		m.complain("the entry lacks the release of %s %d", m.releases[0].key, m.releases[0].token)
	}
	for key, line := range m.lines {
		if _, held := m.current(key); len(line) > 0 && m.underWay[key] == nil && (!held || freed[key]) && !m.place.doubt {
			m.complain("the entry has no grant of %s, which is free by then", key)
		}
	}
}

func (m *slowModel) sealRelease(c *lock.Command, freed map[string]bool) {
	i := slices.IndexFunc(m.releases, func(r *slowRelease) bool { return r.key == c.Key && r.token == c.Token })
	if i < 0 {
		m.complain("the entry has a release of %s %d, which nobody asked for", c.Key, c.Token)
		return
	}
	if m.underWay[c.Key] != nil {
		m.complain("a release of %s stands behind its grant", c.Key)
	}
	m.sealed = append(m.sealed, m.releases[i])
	m.releases = slices.Delete(m.releases, i, i+1)
	if g, held := m.current(c.Key); held && g.Token == c.Token {
		freed[c.Key] = true
	}
}

func (m *slowModel) sealGrant(c *lock.Command, freed map[string]bool) {
	line := m.lines[c.Key]
	g, held := m.current(c.Key)
	switch {
	case m.underWay[c.Key] != nil:
		m.complain("two grants of %s are under way", c.Key)
	case len(line) == 0 || line[0].owner != c.Owner:
		m.complain("owner %d is granted %s, and is not the first in line", c.Owner, c.Key)
	case held && !freed[c.Key] && !m.foreign[g.Token]: // of those it can't know
		m.complain("a grant of %s is proposed, which is held", c.Key)
	default:
		m.underWay[c.Key], m.lines[c.Key] = line[0], line[1:]
	}
}

func (m *slowModel) complain(format string, args ...any) {
	if m.problem == "" {
		m.problem = fmt.Sprintf(format, args...)
	}
}

// committed says what the entry under way answers, before it does.
func (m *slowModel) committed(e *lock.Entry, out *lock.Outcome) {
	m.place.doubt = false
	releases := 0
	for i, c := range e.Commands {
		if c.Kind == lock.KindRelease {
			m.releaseDecided(m.sealed[releases], out.Results[i])
			releases++
		} else {
			m.grantDecided(m.underWay[c.Key], out.Results[i])
		}
	}
	for _, p := range m.probes {
		m.tell(p.client, "N %s token=0", p.key)
	}
	m.probes, m.sealed = nil, nil
}

func (m *slowModel) releaseDecided(r *slowRelease, result lock.Result) {
	letter := "N"
	if result.Status == lock.Released {
		letter = "R"
	}
	if r.client != nil {
		m.tell(r.client, "%s %s token=%d", letter, r.key, r.token)
	}
}

func (m *slowModel) grantDecided(a *slowAcquire, result lock.Result) {
	delete(m.underWay, a.key)
	switch {
	case result.Status == lock.Granted && a.client.left:
		m.releases = append(m.releases, &slowRelease{key: a.key, token: result.Token})
	case result.Status == lock.Granted:
		m.tell(a.client, "A %s owner=%d token=%d", a.key, a.owner, result.Token)
	case a.client.left:
	case m.draining:
		m.tell(a.client, "B %s owner=%d", a.key, a.owner)
	case !a.waits || a.until <= m.now():
		m.tell(a.client, "T %s owner=%d", a.key, a.owner)
	default:
		m.lines[a.key] = slices.Insert(m.lines[a.key], 0, a)
	}
}

// pass lets time pass, from one instant in which something is due to the next.
func (m *slowModel) pass(until time.Duration) {
	for {
		at := min(m.next(), until)
		m.w.sleepUntil(at)
		for key, line := range m.lines {
			m.lines[key] = slices.DeleteFunc(line, func(a *slowAcquire) bool {
				over := a.waits && a.until <= at
				if over {
					m.tell(a.client, "T %s owner=%d", a.key, a.owner)
				}
				return over
			})
		}
		m.patienceEnds(at)
		if at == until {
			return
		}
	}
}

// next returns when the next wait ends, or the next lease when no entry is under way.
func (m *slowModel) next() time.Duration {
	at := never
	if end, ok := m.w.slow.NextDeadline(); ok && m.w.slow.underWay == nil && m.place.standing == serving {
		at = end
		if m.w.s.clustered {
			at = min(at, m.place.sealed+Tick)
		}
	}
	if m.place.standing == elected {
		at = min(at, m.place.patience)
	}
	for _, line := range m.lines {
		for _, a := range line {
			if a.waits {
				at = min(at, a.until)
			}
		}
	}
	return at
}

// check compares what sessions were told, and looks whether anything that could go
// on does not.
func (m *slowModel) check(t *rapid.T, clients []*client) {
	for _, c := range clients {
		var got []string
		for _, a := range c.take() {
			got = append(got, a.String())
		}
		want := m.expect[c]
		delete(m.expect, c)
		slices.Sort(got)
		slices.Sort(want)
		if maybe := m.place.maybe[c]; maybe != "" && len(got) > len(want) {
			want = append(want, maybe)
			slices.Sort(want)
		}
		delete(m.place.maybe, c)
		if !slices.Equal(got, want) {
			t.Fatalf("at %v a session was told\n\t%q\nand was to be told\n\t%q", m.now(), got, want)
		}
	}
	if m.problem != "" {
		t.Fatalf("at %v: %s", m.now(), m.problem)
	}
	if m.w.slow.underWay == nil {
		if len(m.releases) > 0 || len(m.underWay) > 0 || len(m.probes) > 0 {
			t.Fatalf("at %v nothing is under way, and there is something to do", m.now())
		}
		for key, line := range m.lines {
			if _, held := m.current(key); len(line) > 0 && !held {
				t.Fatalf("at %v %s is free, and somebody waits for it", m.now(), key)
			}
		}
	}
	m.w.check()
}

// Whatever sessions ask, however time passes and however long entries take: every
// entry holds what it must and no more, and each session is told what came of it.
func TestServiceWithASlowProposer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			w := newSlowWorld(t, DefaultLimits(), nil)
			m := newSlowModel(w)
			m.place.standing = serving
			clients := []*client{w.open(), w.open(), w.open()}
			actions := m.actions(clients)
			actions[""] = func(t *rapid.T) { m.check(t, clients) }
			t.Repeat(actions)
			m.finish(t, clients)
		})
	})
}

// finish lets all leases and waits end.
func (m *slowModel) finish(t *rapid.T, clients []*client) {
	for range 1000 {
		commitOrPass(m)
	}
	m.check(t, clients)
	if m.w.slow.underWay != nil || len(m.w.s.queues) > 0 || m.w.slow.Len() > 0 {
		t.Fatal("when all leases and waits have ended, something is left")
	}
}

// actions are what sessions and time do.
func (m *slowModel) actions(clients []*client) map[string]func(*rapid.T) {
	w := m.w
	owner := uint64(0)

	aClient := rapid.Custom(func(t *rapid.T) *client { return clients[rapid.IntRange(0, 2).Draw(t, "client")] })
	aKey := rapid.SampledFrom([]string{"a", "a", "b", "c"})
	seconds := func(t *rapid.T, name string, from int) time.Duration {
		return time.Duration(rapid.IntRange(from, 5).Draw(t, name)) * time.Second
	}

	acquire := func(t *rapid.T) {
		owner++
		wait, lease := seconds(t, "wait", 0), seconds(t, "lease", 1)
		a := &slowAcquire{client: aClient.Draw(t, "who"), owner: owner, key: aKey.Draw(t, "key"), wait: wait, waits: wait > 0}
		m.acquire(a)
		m.ask(a.client, true, func() {
			w.s.Acquire(a.client.session, Acquire{Key: a.key, Owner: a.owner, Wait: wait, Lease: lease})
		})
	}
	release := func(t *rapid.T) {
		r := &slowRelease{client: aClient.Draw(t, "who"), key: aKey.Draw(t, "key")}
		r.token = rapid.Uint64Range(1, owner+1).Draw(t, "token")
		if g, held := m.current(r.key); held && rapid.IntRange(0, 3).Draw(t, "exact") > 0 {
			r.token = g.Token
		}
		m.release(r)
		m.ask(r.client, false, func() { w.s.Release(r.client.session, r.key, r.token) })
	}
	commit := func(t *rapid.T) {
		e := w.slow.underWay
		if e == nil {
			t.Skip("nothing is under way")
		}
		m.commit(e)
	}
	return map[string]func(*rapid.T){

		"acquire": acquire, "acquire ": acquire,
		"release": release, "release ": release,
		"commit": commit, "commit ": commit,
		"probe": func(t *rapid.T) {
			r := &slowRelease{client: aClient.Draw(t, "who"), key: aKey.Draw(t, "key")}
			m.release(r)
			m.ask(r.client, false, func() { w.s.Release(r.client.session, r.key, 0) })
		},
		"pass": func(t *rapid.T) {
			d := time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "time"))
			if next := m.next(); next != never && rapid.Bool().Draw(t, "to the next end") {
				d = next - m.now() - rapid.SampledFrom([]time.Duration{0, 1}).Draw(t, "before it")
			}
			m.pass(m.now() + max(d, 0))
		},
		"leave": func(t *rapid.T) {
			i := rapid.IntRange(0, 2).Draw(t, "client")
			m.leave(clients[i])
			clients[i].leave()
			m.check(t, clients)
			clients[i] = m.open()
		},
		"a grant from elsewhere": func(t *rapid.T) {
			key := aKey.Draw(t, "key")
			if _, held := m.current(key); held || w.slow.underWay == nil {
				t.Skip("held, or nothing is under way")
			}
			m.foreign[w.slow.elsewhere(key, seconds(t, "lease", 1))] = true
		},
		"drain": func(t *rapid.T) {
			if rapid.IntRange(0, 30).Draw(t, "really") < 30 {
				t.Skip("not yet")
			}
			m.drain()
			w.s.Drain()
			synctest.Wait()
		},
	}
}

// commitOrPass goes on to whatever comes next.
func commitOrPass(m *slowModel) {
	if e := m.w.slow.underWay; e != nil {
		m.commit(e)
	} else if next := m.next(); next != never {
		m.pass(max(next, m.now()))
	}
}
