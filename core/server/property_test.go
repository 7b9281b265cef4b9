package server

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/core/wire"
)

var seedFlag = flag.Uint64("seed", 0, "replay the random test with this seed")

// watched is the real service, and remembers which grants it made and which were
// given back.
type watched struct {
	*service.Service
	mu         sync.Mutex
	granted    map[uint64]string // token: key
	abandoned  map[uint64]string
	twice      []uint64 // given back more than once
	unanswered int      // acquires that were decided and whose answer is neither written nor given up
}

func (f *watched) AcquireDecided(e service.AcquireEvent) (answered func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Result == service.AcquireGranted {
		f.granted[e.Token] = e.Key
	}
	f.unanswered++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unanswered--
	}
}
func (*watched) ReleaseDecided(service.ReleaseEvent) {}
func (*watched) LeaseEnded(service.LeaseEvent)       {}
func (*watched) GateChanged(service.Gate, bool)      {}

func (f *watched) Abandon(key string, token uint64) {
	f.mu.Lock()
	if _, ok := f.abandoned[token]; ok {
		f.twice = append(f.twice, token)
	}
	f.abandoned[token] = key
	f.mu.Unlock()
	f.Service.Abandon(key, token)
}

// Every grant is either in a write that has begun or given back, never both, and
// never neither, whatever clients do and whenever the server ends.
func TestEveryGrantIsInAWriteOrGivenBack(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	first := rand.Uint64()
	if *seedFlag != 0 {
		first, seeds = *seedFlag, 1
	}
	givenBack := 0
	for i := range seeds {
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { givenBack += playRandomly(t, seed) })
		})
	}
	if givenBack == 0 && seeds > 1 {
		t.Error("no grant was ever undelivered: the test tests nothing")
	}
}

// players is how many clients play; few keys, so that most acquires wait.
const players, keys, moves = 6, 4, 400

// playRandomly plays one schedule and returns how many grants were given back.
func playRandomly(t *testing.T, seed uint64) (givenBack int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	svc := &watched{granted: make(map[uint64]string), abandoned: make(map[uint64]string)}
	svc.Service = service.New(local.New(1), service.Config{Limits: service.DefaultLimits(), Observer: svc})
	t.Cleanup(svc.Close)
	w := newWorldOf(t, svc, Config{})
	var all []*client
	connected := make([]*client, players)
	for range moves {
		i := rng.IntN(players)
		c := connected[i]
		if c == nil {
			c = w.connect()
			connected[i], all = c, append(all, c)
		}
		if !play(c, rng) {
			connected[i] = nil
		}
		if rng.IntN(3) == 0 {
			synctest.Wait()
		}
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		}
	}
	if rng.IntN(2) == 0 {
		svc.Drain()
	}
	w.shutdown(time.Duration(rng.IntN(8000)) * time.Millisecond)
	synctest.Wait()

	begun := make(map[uint64]string)
	for _, c := range all {
		for _, r := range replies(t, afterHandshake(t, c.end.peer.allOffered())) {
			if r.Op == wire.OpAcquire {
				begun[r.Token] = r.Text
			}
		}
	}
	svc.mu.Lock()
	defer svc.mu.Unlock()
	for token, key := range svc.granted {
		_, inWrite := begun[token]
		_, givenBack := svc.abandoned[token]
		if inWrite == givenBack {
			t.Errorf("grant %d of %s: in a write %v, given back %v", token, key, inWrite, givenBack)
		}
	}
	for _, token := range slices.Sorted(maps.Keys(begun)) {
		if svc.granted[token] != begun[token] {
			t.Errorf("a write has grant %d of %q, which is one of %q", token, begun[token], svc.granted[token])
		}
	}
	for token, key := range svc.abandoned {
		if svc.granted[token] != key {
			t.Errorf("given back: %d of %q, which is one of %q", token, key, svc.granted[token])
		}
	}
	if svc.unanswered != 0 {
		t.Errorf("of %d acquires it was never told that their answer was written or given up", svc.unanswered)
	}
	if len(svc.twice) > 0 {
		t.Errorf("given back twice: %v", svc.twice)
	}
	if waiters := svc.Stats().Waiters; waiters != 0 {
		t.Errorf("%d waiters are left", waiters)
	}
	return len(svc.abandoned)
}

// afterHandshake drops the challenge and the ready frame.
func afterHandshake(t *testing.T, data []byte) []byte {
	t.Helper()
	head := len("SHA-256 ") + wire.NonceLen + len("\n\n")
	if len(data) < head {
		t.Fatalf("the server wrote only %q", data)
	}
	return data[head:]
}

// play makes one move of a client, and returns false when that was its last.
func play(c *client, rng *rand.Rand) bool {
	key := fmt.Sprint("key-", rng.IntN(keys))
	switch n := rng.IntN(100); {
	case n < 50: // an error is a connection that has ended already
		_, err := c.end.Write([]byte(acquire(key, byte(rng.IntN(6)), byte(1+rng.IntN(3)), rng.Uint64())))
		return err == nil
	case n < 68: // releases whatever token it has seen last
		for _, r := range lastReplies(c) {
			if r.Op == wire.OpAcquire {
				c.end.Write([]byte(release(r.Text, r.Token)))
			}
		}
	case n < 80:
		c.end.setWindow(rng.IntN(100))
	case n < 90:
		c.end.setWindow(defaultWindow)
	case n < 92:
		c.end.CloseWrite()
	case n < 95:
		c.end.Reset()
		return false
	case n < 98:
		c.end.Close()
		return false
	default:
		c.end.Write([]byte("Z"))
	}
	return true
}

// lastReplies reads what has come, in whole frames at its beginning.
func lastReplies(c *client) (all []wire.Reply) {
	c.end.SetReadDeadline(time.Now())
	defer c.end.SetReadDeadline(time.Time{})
	var d wire.ReplyDecoder
	c.end.link.mu.Lock()
	data := c.end.inbox
	c.end.inbox = nil
	c.end.link.cond.Broadcast()
	c.end.link.mu.Unlock()
	d.Feed(data)
	for r, ok := d.Next(); ok; r, ok = d.Next() {
		all = append(all, r)
	}
	return all
}
