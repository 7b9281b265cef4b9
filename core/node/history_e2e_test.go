package node_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ticketing-io/ticketing/core/wire"
)

// asked is what one operation of a history asked for: a key, or to give it back.
type asked struct {
	key   int
	token uint64 // of a release; 0 for an acquire
}

// lockModel is a lock as its users see it. Its state is the token of the key's
// current grant, or 0, and the greatest token so far. Leases are longer than the
// history, so only a release ends a grant, and nobody is refused a free key.
var lockModel = porcupine.Model{
	Partition: byKey,
	Init:      func() any { return [2]uint64{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.([2]uint64), input.(asked), output.(wire.Reply)
		current, highest := s[0], s[1]
		switch out.Op {
		case wire.OpAcquire:
			return in.token == 0 && current == 0 && out.Token > highest, [2]uint64{out.Token, out.Token}
		case wire.OpTimeout:
			return in.token == 0 && current != 0, s
		case wire.OpRelease:
			return current == in.token, [2]uint64{0, highest}
		case wire.OpNotCurrent:
			return current != in.token, s
		}
		return false, s
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %c %d", input, output.(wire.Reply).Op, output.(wire.Reply).Token)
	},
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[int][]porcupine.Operation{}
	for _, op := range history {
		key := op.Input.(asked).key
		parts[key] = append(parts[key], op)
	}
	var list [][]porcupine.Operation
	for _, part := range parts {
		list = append(list, part)
	}
	return list
}

// TestHistoriesAreLinearizable: whatever clients do at the same time, each key is
// held by one at most, by tokens that only rise.
func TestHistoriesAreLinearizable(t *testing.T) {
	const clients, steps, keys = 8, 300, 3
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("SEED=%d", seed)
	n, _, _ := start(t, map[string]string{})
	h := history{began: time.Now()}
	var wg sync.WaitGroup
	for id := range clients {
		c := dialRaw(t, n.Addr().String(), "")
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		wg.Go(func() {
			held := map[int]uint64{}
			for range steps {
				in := asked{key: random.IntN(keys)}
				in.token = held[in.key]
				if in.token == 0 && random.IntN(10) == 0 {
					in.token = 1 // of no grant
				}
				var wait uint8
				if random.IntN(20) == 0 {
					wait = 1
				}
				out := h.do(t, c, id, in, wait)
				switch out.Op {
				case wire.OpAcquire:
					held[in.key] = out.Token
				case wire.OpRelease:
					delete(held, in.key)
				}
			}
			for key, token := range held {
				h.do(t, c, id, asked{key, token}, 0)
			}
		})
	}
	wg.Wait()
	if result := porcupine.CheckOperationsTimeout(lockModel, h.operations, time.Minute); result != porcupine.Ok {
		t.Fatalf("a history of %d operations is %s", len(h.operations), result)
	}
}

// history is what all clients did, with the times between which each did it.
type history struct {
	began      time.Time
	mu         sync.Mutex
	operations []porcupine.Operation
}

// do asks for one operation, notes it, and returns its answer.
func (h *history) do(t *testing.T, c *rawClient, id int, in asked, wait uint8) wire.Reply {
	key := fmt.Sprintf("order-%d", in.key)
	if in.token != 0 {
		c.release(key, in.token)
	} else {
		c.acquire(key, wait, wire.MaxLease, uint64(id))
	}
	call := time.Since(h.began)
	if err := c.flush(); err != nil {
		t.Error(err)
	}
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	out, err := c.read()
	if err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: id, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(h.began)),
	})
	return out
}
