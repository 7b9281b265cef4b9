package service

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/lock"
)

// tester is what the harness needs of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// world is a service in a synctest bubble: its time is fake, and passes in sleep
// alone.
type world struct {
	t    tester
	s    *Service
	slow *slow // nil when entries are applied at once

	mu  sync.Mutex
	all []told // what all sessions were told, in order
}

// newWorld returns a service that applies entries at once, its first token 1.
func newWorld(t tester, l Limits, o Observer) *world {
	return startWorld(t, local.New(1), nil, l, o)
}

// newSlowWorld returns one whose entries stay under way until commit.
func newSlowWorld(t tester, l Limits, o Observer) *world {
	p := &slow{Proposer: local.New(1)}
	return startWorld(t, p, p, l, o)
}

func startWorld(t tester, p Proposer, slow *slow, l Limits, o Observer) *world {
	w := &world{t: t, s: New(p, Config{Limits: l, Observer: o}), slow: slow}
	t.Cleanup(w.s.Close)
	return w
}

// newCluster returns a service of a cluster's node, which follows and knows no leader.
// Its entries stay under way until commit.
func newCluster(t tester, l Limits, o Observer) *world {
	p := &slow{Proposer: local.New(1)}
	w := &world{t: t, s: New(p, Config{Limits: l, Observer: o, Clustered: true}), slow: p}
	t.Cleanup(w.s.Close)
	return w
}

// newLeader returns one that serves, at the address "self".
func newLeader(t tester, l Limits, o Observer) *world {
	w := newCluster(t, l, o)
	w.s.Lead("self")
	return w
}

// check fails the test when the service is broken, or when a token is not above
// those granted before it.
func (w *world) check() {
	w.t.Helper()
	if err := w.s.check(); err != nil {
		w.t.Fatalf("at %v the service is broken: %v", w.s.now(), err)
	}
	last := uint64(0)
	for _, a := range w.all {
		if a.Outcome != Granted {
			continue
		}
		if a.Token <= last {
			w.t.Fatalf("token %d was granted after %d", a.Token, last)
		}
		last = a.Token
	}
}

// sleep lets time pass, and what is due then happen.
func (w *world) sleep(d time.Duration) {
	w.s.Stats() // takes the lock: what the test wrote comes before what the timer reads
	time.Sleep(d)
	synctest.Wait()
}

// sleepUntil lets time pass until so much of it has passed since the beginning.
func (w *world) sleepUntil(at time.Duration) { w.sleep(at - w.s.now()) }

// commit applies the entry that is under way, like a cluster that has come to
// agree on it. What is given is called with the outcome before the service is.
func (w *world) commit(before ...func(*lock.Outcome)) {
	w.t.Helper()
	e := w.slow.take(w.t)
	out, _ := w.slow.Proposer.Propose(e)
	for _, f := range before {
		f(out)
	}
	w.s.Applied(out)
	w.s.Next()
	synctest.Wait()
}

// lose forgets the entry under way, as a cluster does that is not told what came of it.
// It was applied all the same, or was not.
func (w *world) lose(applied bool) {
	w.t.Helper()
	e := w.slow.take(w.t)
	if applied {
		w.slow.Proposer.Propose(e)
	}
	w.s.Lost()
	w.s.Next()
	synctest.Wait()
}

// refuse forgets the entry under way, as a cluster does that has not taken it.
func (w *world) refuse() {
	w.t.Helper()
	w.slow.take(w.t)
	w.s.Refused()
	w.s.Next()
	synctest.Wait()
}

// step takes the service to another standing. The entry under way is applied all the
// same, or is not.
func (w *world) step(applied bool, to func()) {
	e := w.slow.underWay
	w.slow.underWay = nil
	if e != nil && applied {
		w.slow.Proposer.Propose(e)
	}
	to()
	synctest.Wait()
}

// commitAll applies entries until none is under way.
func (w *world) commitAll() {
	for w.slow.underWay != nil {
		w.commit()
	}
}

// underWay returns the commands of the entry that is under way, as in "release a 1".
func (w *world) underWay() []string {
	if w.slow.underWay == nil {
		return nil
	}
	list := []string{}
	for _, c := range w.slow.underWay.Commands {
		switch c.Kind {
		case lock.KindRelease:
			list = append(list, fmt.Sprintf("release %s %d", c.Key, c.Token))
		case lock.KindGrant:
			list = append(list, fmt.Sprintf("grant %s to %d", c.Key, c.Owner))
		default:
			list = append(list, fmt.Sprintf("order %d", c.Level))
		}
	}
	return list
}

func (w *world) wantUnderWay(want ...string) {
	w.t.Helper()
	if got := w.underWay(); !slices.Equal(got, want) {
		w.t.Fatalf("at %v the entry under way has %q, want %q", w.s.now(), got, want)
	}
}

// slow is a proposer that applies an entry some time after it was proposed. It
// stands for a cluster's.
type slow struct {
	*local.Proposer
	underWay *lock.Entry
	proposed func(*lock.Entry) // called with each entry, unless nil
}

func (p *slow) Propose(e *lock.Entry) (*lock.Outcome, bool) {
	if p.underWay != nil {
		panic("two entries are under way")
	}
	copied := *e
	copied.Commands = slices.Clone(e.Commands) // a proposer may not keep the entry itself
	p.underWay = &copied
	if p.proposed != nil {
		p.proposed(e)
	}
	return nil, false
}

// take returns the entry that is under way, which is so no more.
func (p *slow) take(t tester) *lock.Entry {
	t.Helper()
	e := p.underWay
	if e == nil {
		t.Fatalf("no entry is under way")
	}
	p.underWay = nil
	return e
}

// elsewhere grants a key in the replicated table without this service's doing.
func (p *slow) elsewhere(key string, lease time.Duration) (token uint64) {
	out, _ := p.Proposer.Propose(&lock.Entry{Commands: []lock.Command{{Kind: lock.KindGrant, Key: key, Lease: lease}}})
	return out.Results[0].Token
}

// client is a session and what it was told. Like a connection it flushes after
// each of its own calls.
type client struct {
	w       *world
	session *Session
	left    bool

	// Guarded by world.mu.
	answers   []told // since the last take
	unflushed int
	ended     bool   // no word may come any more but answers already on their way
	leader    string // as it was told last
}

// told is an answer, or another word, and when it came.
type told struct {
	at time.Duration
	Answer
	word string // a leader's address or an end, as in "L addr"; empty for an answer
}

func (w *world) open() *client {
	c := &client{w: w}
	c.session = w.s.Open(c, "holder")
	c.Flush()
	return c
}

func (c *client) Deliver(a Answer) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	answer := told{at: c.w.s.now(), Answer: a}
	c.answers = append(c.answers, answer)
	c.w.all = append(c.w.all, answer)
	c.unflushed++
}

func (c *client) Flush() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.unflushed = 0
}

func (c *client) Leader(addr string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if addr == "" {
		return // a single server's
	}
	c.leader = addr
	c.answers = append(c.answers, told{at: c.w.s.now(), word: "L " + addr})
	c.unflushed++
}

func (c *client) End(reason EndReason, addr string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.ended {
		c.w.t.Errorf("a session was ended twice")
	}
	c.ended = true
	word := map[EndReason]string{EndMoved: "M " + addr, EndNoLeader: "E no_leader", EndNotActive: "E not_active"}[reason]
	c.answers = append(c.answers, told{at: c.w.s.now(), word: word})
}

func (c *client) acquire(owner uint64, key string, wait, lease time.Duration) {
	c.w.s.Acquire(c.session, Acquire{Key: key, Owner: owner, Wait: wait, Lease: lease})
	c.Flush()
	synctest.Wait()
}

func (c *client) release(key string, token uint64) {
	c.w.s.Release(c.session, key, token)
	c.Flush()
	synctest.Wait()
}

func (c *client) leave() {
	c.left = true
	c.w.s.Leave(c.session)
	synctest.Wait()
}

// take returns what the session was told since the last take.
func (c *client) take() []told {
	c.w.t.Helper()
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.unflushed > 0 {
		c.w.t.Fatalf("%d answers were not flushed", c.unflushed)
	}
	answers := c.answers
	c.answers = nil
	return answers
}

// want fails the test unless the session was told exactly this since the last
// take, each as in "5s A a owner=1 token=3".
func (c *client) want(want ...string) {
	c.w.t.Helper()
	var got []string
	for _, a := range c.take() {
		got = append(got, a.String())
	}
	if !slices.Equal(got, want) {
		c.w.t.Fatalf("session was told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (a told) String() string {
	if a.word != "" {
		return fmt.Sprintf("%v %s", a.at, a.word)
	}
	switch a.Outcome {
	case Released, NotCurrent:
		return fmt.Sprintf("%v %s %s token=%d", a.at, letter[a.Outcome], a.Key, a.Token)
	case Granted:
		return fmt.Sprintf("%v A %s owner=%d token=%d", a.at, a.Key, a.Owner, a.Token)
	}
	return fmt.Sprintf("%v %s %s owner=%d", a.at, letter[a.Outcome], a.Key, a.Owner)
}

// letter is what an outcome is on the wire.
var letter = map[Outcome]string{Granted: "A", TimedOut: "T", Busy: "B", Released: "R", NotCurrent: "N"}
