package replica

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ticketing-io/ticketing/core/link"
)

// Storage is what a node has on disk.
type Storage string

// What a node may have.
const (
	Empty    Storage = "empty"    // neither a note nor state
	Prepared Storage = "prepared" // it noted that every member was there, empty or prepared
	HasState Storage = "state"    // a log or a snapshot
)

const (
	// askPatience bounds one question to another node.
	askPatience = 2 * time.Second
	// askPause is the time between two rounds of questions, at the first start and later.
	askPause = time.Second
	// askReminder is how often the log names who is waited for.
	askReminder = 30 * time.Second
)

// firstStart returns when this node may start raft: it has state; or every configured
// member is there for the cluster's first start, which has two durable steps, so that no
// emptied voter is taken for a new one; or it joins a cluster that does not count on it.
// DESIGN.md argues it.
func (g *generation) firstStart(log raft.LogStore, stable raft.StableStore) error {
	has, err := raft.HasExistingState(log, stable, g.stores.Snapshots)
	if err != nil {
		return fmt.Errorf("look for state: %w", err)
	}
	r := g.r
	if has && g.hollow(log) {
		// A crash in the middle of the bootstrap: there is a term and nothing else.
		// Nobody was given a vote (MayVote), so it can be done again.
		if err := stable.SetUint64(raftTermKey, 0); err != nil {
			return err
		}
		has = false
	}
	if has {
		return r.began()
	}
	if r.hasBegun() {
		return fmt.Errorf("%w: its note says that there was a log; remove the id %q from the cluster, and add this node under a new one with an empty data folder", ErrEmptied, r.opts.NodeID)
	}
	var reminded time.Time
	for {
		step, err := r.decide(r.askAll(others(r.opts.Members, r.opts.NodeID)))
		switch {
		case errors.Is(err, ErrEmptied), errors.Is(err, ErrRemoved):
			return err
		case step == stepPrepare:
			if err := r.prepare(); err != nil {
				return err
			}
			continue
		case step == stepBootstrap:
			if err := g.bootstrap(log, stable); err != nil {
				return err
			}
			return r.began()
		case step == stepJoin:
			r.log.Info("this node has no data and no vote: it waits for a leader that has it as a member (ticketing members add)")
			return nil
		}
		if time.Since(reminded) >= askReminder {
			reminded = time.Now()
			r.log.Warn("the cluster's first start waits", "for", err)
		}
		select {
		case <-time.After(askPause):
		case <-g.stop:
			return errStopped
		}
	}
}

// step is what a node without state does next.
type step int

const (
	stepWait step = iota
	stepPrepare
	stepBootstrap
	stepJoin
)

// answer is what a member said when it was asked.
type answer struct {
	member Member
	peer   Peer
	err    error
}

// decide says what to do by what the others answered. With stepWait the error says for
// whom or what.
func (r *Replica) decide(answers []answer) (step, error) {
	self, list := r.opts.NodeID, listDigest(r.opts.Members)
	listed := slices.ContainsFunc(r.opts.Members, func(m Member) bool { return m.ID == self })
	prepared := r.prepared() == list
	var waiting []string
	var begun, bare int // others with state that know their cluster, others that are not prepared
	var without int     // of those with state, which do not count on this node's vote
	var counting string // one that does
	for _, a := range answers {
		switch {
		case errors.Is(a.err, link.ErrRemoved):
			return stepWait, fmt.Errorf("%w: %s says so", ErrRemoved, a.member.ID)
		case a.err != nil:
			waiting = append(waiting, fmt.Sprintf("%s at %s (%v)", a.member.ID, a.member.Raft, a.err))
		case a.peer.ID != a.member.ID:
			waiting = append(waiting, fmt.Sprintf("%s at %s, where %s answers", a.member.ID, a.member.Raft, a.peer.ID))
		case slices.Contains(a.peer.Voters, self):
			begun, counting = begun+1, a.member.ID
		case len(a.peer.Voters) > 0:
			begun, without = begun+1, without+1
		case a.peer.Storage == HasState:
			waiting = append(waiting, fmt.Sprintf("%s, which has joined no cluster yet", a.member.ID))
		case listed && a.peer.List != list:
			waiting = append(waiting, fmt.Sprintf("%s, whose list of members is another one", a.member.ID))
		case a.peer.Storage == Empty:
			bare++
		}
	}
	switch {
	case counting != "" && prepared:
		// The cluster has begun, so everybody was prepared once, and it may need this node
		// when another one is dead by now.
		return stepBootstrap, nil
	case counting != "":
		return stepWait, fmt.Errorf("%w: %s says so; remove the id %q from the cluster, and add this node under a new one", ErrEmptied, counting, self)
	case !prepared && (2*without > len(answers) || len(answers) == 0 && !listed):
		// Of a majority, one would know that this node had been given a vote.
		return stepJoin, nil
	case len(waiting) > 0:
		return stepWait, errors.New(strings.Join(waiting, "; "))
	case !listed:
		return stepWait, errors.New("a cluster to begin: this node is in no list of members, so it does not begin one")
	case !prepared && begun > 0:
		return stepWait, errors.New("a majority of the others to say whether they count on this node")
	case !prepared:
		return stepPrepare, nil
	case bare > 0:
		return stepWait, errors.New("every other member to be prepared as well")
	}
	return stepBootstrap, nil
}

// askAll asks members about themselves, at the same time.
func (r *Replica) askAll(members []Member) []answer {
	answers := make([]answer, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(r.ctx, askPatience)
			defer cancel()
			p, err := r.opts.Ask(ctx, m)
			answers[i] = answer{m, p, err}
		})
	}
	wg.Wait()
	return answers
}

// prepare notes durably that every member was there.
func (r *Replica) prepare() error {
	if err := r.keep(func(n *note) { n.Prepared = listDigest(r.opts.Members) }); err != nil {
		return err
	}
	r.setStorage(Prepared)
	r.log.Info("every member is there; this node is prepared for the cluster's first start")
	return nil
}

// began notes that there is state: where it is missing later, it was lost.
func (r *Replica) began() error {
	r.setStorage(HasState)
	return r.keep(func(n *note) { n.Began = true })
}

func (r *Replica) hasBegun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note.Began
}

// raftTermKey is where raft keeps its term.
var raftTermKey = []byte("CurrentTerm")

// hollow tells whether there is a term, but no log and no snapshot, on a node that is
// prepared for the cluster's first start.
func (g *generation) hollow(log raft.LogStore) bool {
	last, err := log.LastIndex()
	if err != nil || last > 0 || g.r.prepared() == "" || g.r.hasBegun() {
		return false
	}
	list, err := g.stores.Snapshots.List()
	return err == nil && len(list) == 0
}

// keep changes this node's note, durably, if that is a change.
func (r *Replica) keep(change func(*note)) error {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.mu.Lock()
	n := r.note
	r.mu.Unlock()
	n.NodeID = r.opts.NodeID
	change(&n)
	if n == r.note {
		return nil
	}
	if err := n.write(r.opts.Notes); err != nil {
		return err
	}
	r.mu.Lock()
	r.note = n
	r.mu.Unlock()
	return nil
}

func (r *Replica) prepared() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note.Prepared
}

func (r *Replica) setStorage(s Storage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.storage = s
}

// bootstrap writes the cluster's first configuration. Every member writes the same.
func (g *generation) bootstrap(log raft.LogStore, stable raft.StableStore) error {
	var c raft.Configuration
	for _, m := range sorted(g.r.opts.Members) {
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Raft)})
	}
	if err := raft.BootstrapCluster(g.r.raftConfig(), log, stable, g.stores.Snapshots, nil, c); err != nil {
		return fmt.Errorf("begin the cluster: %w", err)
	}
	g.r.log.Info("the cluster begins", "members", len(c.Servers))
	return nil
}

func others(members []Member, self string) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.ID == self })
}

func sorted(members []Member) []Member {
	return slices.SortedFunc(slices.Values(members), func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
}

// listDigest is a short name of a list of members: two nodes with different lists must
// not begin a cluster together.
func listDigest(members []Member) string {
	h := sha256.New()
	for _, m := range sorted(members) {
		fmt.Fprintf(h, "%q %q\n", m.ID, m.Raft)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
