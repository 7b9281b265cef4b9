package service

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the service as a reader of docs/PROTOCOL.md, sections 3 and 4, would
// write it: lists that are looked through whole. It says what each session is to
// be told, and when to the nanosecond. Tokens it learns from the answers.
type model struct {
	limits  Limits
	now     time.Duration
	grants  map[string]*modelGrant
	waiting []*modelAcquire // in the order in which they came
	expect  map[*client][]string
	results map[uint64]AcquireResult // how each acquire ended, by owner

	keysClosed, waitersClosed bool
}

type modelGrant struct {
	token uint64
	owner uint64
	until time.Duration
}

type modelAcquire struct {
	client *client
	owner  uint64
	key    string
	lease  time.Duration
	until  time.Duration
}

func newModel(l Limits) *model {
	return &model{
		limits: l, grants: make(map[string]*modelGrant),
		expect: make(map[*client][]string), results: make(map[uint64]AcquireResult),
	}
}

// acquire is decided at once or waits.
func (m *model) acquire(a *modelAcquire, wait time.Duration) {
	defer m.moveGates()
	g := m.grants[a.key]
	a.until = m.now + wait
	switch {
	case g == nil && m.keysClosed:
		m.tell(a, "B", AcquireBusy)
	case g == nil:
		m.grant(a)
	case wait == 0:
		m.tell(a, "T", AcquireTimedOut)
	case m.waitersClosed, m.waiters(a.key) >= m.limits.WaitersPerKey:
		m.tell(a, "B", AcquireBusy)
	default:
		m.waiting = append(m.waiting, a)
	}
}

func (m *model) waiters(key string) (n int) {
	for _, a := range m.waiting {
		n += count(a.key == key)
	}
	return n
}

func (m *model) grant(a *modelAcquire) {
	m.grants[a.key] = &modelGrant{owner: a.owner, until: m.now + a.lease}
	m.tell(a, "A", AcquireGranted)
}

func (m *model) tell(a *modelAcquire, letter string, result AcquireResult) {
	m.expect[a.client] = append(m.expect[a.client], fmt.Sprintf("%v %s %s owner=%d", m.now, letter, a.key, a.owner))
	m.results[a.owner] = result
}

func (m *model) release(c *client, key string, token uint64) {
	defer m.moveGates()
	letter := "N"
	if g := m.grants[key]; g != nil && g.token == token {
		letter = "R"
		m.free(key)
	}
	m.expect[c] = append(m.expect[c], fmt.Sprintf("%v %s %s token=%d", m.now, letter, key, token))
}

// free ends a key's grant: the first that waits for it has it.
func (m *model) free(key string) {
	delete(m.grants, key)
	for i, a := range m.waiting {
		if a.key == key {
			m.waiting = slices.Delete(m.waiting, i, i+1)
			m.grant(a)
			return
		}
	}
}

func (m *model) leave(c *client) {
	defer m.moveGates()
	m.waiting = slices.DeleteFunc(m.waiting, func(a *modelAcquire) bool {
		if a.client == c {
			m.results[a.owner] = AcquireGone
		}
		return a.client == c
	})
}

// next returns when the next lease or wait ends.
func (m *model) next() (at time.Duration, ok bool) {
	at = never
	for _, g := range m.grants {
		at = min(at, g.until)
	}
	for _, a := range m.waiting {
		at = min(at, a.until)
	}
	return at, at != never
}

// pass lets time pass: in each instant leases end before waits do.
func (m *model) pass(until time.Duration) {
	for at, ok := m.next(); ok && at <= until; at, ok = m.next() {
		m.now = at
		for _, key := range slices.Collect(maps.Keys(m.grants)) {
			if m.grants[key].until == at {
				m.free(key)
			}
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(a *modelAcquire) bool {
			if a.until == at {
				m.tell(a, "T", AcquireTimedOut)
			}
			return a.until == at
		})
		m.moveGates()
	}
	m.now = until
}

func (m *model) moveGates() {
	m.keysClosed = moved(m.keysClosed, len(m.grants), m.limits.Keys)
	m.waitersClosed = moved(m.waitersClosed, len(m.waiting), m.limits.Waiters)
}

func moved(closed bool, use, limit int) bool {
	if 10*use >= 9*limit {
		return true
	}
	return closed && 4*use >= 3*limit
}

// compare checks what a session was told against what it was to be told. In one
// instant the answers on different keys may come in any order.
func (m *model) compare(t *rapid.T, c *client) {
	var got []string
	for _, a := range c.take() {
		text := a.String()
		if a.Outcome == Granted {
			text = fmt.Sprintf("%v A %s owner=%d", a.at, a.Key, a.Owner)
			if g := m.grants[a.Key]; g != nil && g.owner == a.Owner {
				g.token = a.Token
			}
		}
		got = append(got, text)
	}
	want := m.expect[c]
	delete(m.expect, c)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("at %v a session was told\n\t%q\nand was to be told\n\t%q", m.now, got, want)
	}
}

// Whatever sessions ask, and however time passes, each is told exactly what the
// protocol says, at exactly the right time.
func TestServiceAgreesWithANaiveModel(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	limits := Limits{WaitersPerKey: 4, Waiters: 10, Keys: 8, Acquires: 5, Releases: 5}
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			var rec recorder
			w, m := newWorld(t, limits, &rec), newModel(limits)
			clients := []*client{w.open(), w.open(), w.open()}
			owner, stale := uint64(0), []uint64{999}

			aClient := rapid.SampledFrom(clients)
			aKey := rapid.OneOf(rapid.SampledFrom(keys[:2]), rapid.SampledFrom(keys))
			seconds := func(t *rapid.T, name string, from int) time.Duration {
				return time.Duration(rapid.IntRange(from, 5).Draw(t, name)) * time.Second
			}

			acquire := func(t *rapid.T) {
				owner++
				a := &modelAcquire{client: aClient.Draw(t, "client"), owner: owner, key: aKey.Draw(t, "key"), lease: seconds(t, "lease", 1)}
				wait := seconds(t, "wait", 0)
				m.acquire(a, wait)
				a.client.acquire(a.owner, a.key, wait, a.lease)
			}
			release := func(t *rapid.T) {
				c, key := aClient.Draw(t, "client"), aKey.Draw(t, "key")
				token := rapid.SampledFrom(stale).Draw(t, "stale token")
				if g := m.grants[key]; g != nil && rapid.IntRange(0, 4).Draw(t, "exact") > 0 {
					token = g.token
					stale = append(stale, token)
				}
				m.release(c, key, token)
				c.release(key, token)
			}
			pass := func(t *rapid.T) {
				d := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "time"))
				if next, ok := m.next(); ok && rapid.IntRange(0, 3).Draw(t, "to the next end") > 0 {
					d = next - m.now - rapid.SampledFrom([]time.Duration{0, 1, -1}).Draw(t, "before it")
				}
				m.pass(m.now + max(d, 0))
				w.sleepUntil(m.now)
			}
			t.Repeat(map[string]func(*rapid.T){
				"acquire": acquire, "acquire ": acquire, "acquire  ": acquire, // more often than the rest
				"release": release,
				"pass":    pass,
				"leave": func(t *rapid.T) {
					i := rapid.IntRange(0, len(clients)-1).Draw(t, "client")
					m.leave(clients[i])
					clients[i].leave()
					m.compare(t, clients[i])
					clients[i] = w.open()
					aClient = rapid.SampledFrom(clients)
				},
				"": func(t *rapid.T) {
					for _, c := range clients {
						m.compare(t, c)
					}
					w.check()
				},
			})

			w.sleep(time.Minute) // all leases and waits end
			m.pass(m.now + time.Minute)
			for _, c := range clients {
				m.compare(t, c)
			}
			checkReports(t, &rec, m.results)
		})
	})
}

// checkReports checks that each acquire was reported once, as what it was.
func checkReports(t *rapid.T, rec *recorder, want map[uint64]AcquireResult) {
	if len(rec.twice) > 0 {
		t.Fatalf("reported twice: %v", rec.twice)
	}
	got := make(map[uint64]AcquireResult)
	for owner, e := range rec.acquires {
		got[owner] = e.Result
	}
	if !maps.Equal(got, want) {
		t.Fatalf("reported were\n\t%v\nand happened has\n\t%v", got, want)
	}
}
