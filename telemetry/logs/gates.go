package logs

import (
	"log/slog"
	"sync"
	"time"
)

// gatesEvery is how soon gates are looked at again: a gate that flaps makes a line a
// second, whose last one says how it stands.
const gatesEvery = time.Second

// Gates logs when gates of admission close and open. Changed is for a service's
// observer: it does not wait for the log, which a goroutine writes.
type Gates struct {
	log  *slog.Logger
	poke chan struct{} // one slot: a gate has changed
	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup

	mu    sync.Mutex
	gates map[string]*gate
}

// gate is what is known of one gate.
type gate struct {
	closed  bool
	changes int // that were not logged yet
}

// NewGates starts a Gates. Close ends it.
func NewGates(log *slog.Logger) *Gates {
	g := &Gates{log: log, poke: make(chan struct{}, 1), stop: make(chan struct{}), gates: make(map[string]*gate)}
	g.wg.Go(g.run)
	return g
}

// Changed takes the change of a gate, whose names are few and the program's own. It
// neither blocks nor logs.
func (g *Gates) Changed(name string, closed bool) {
	g.mu.Lock()
	one := g.gates[name]
	if one == nil {
		one = &gate{}
		g.gates[name] = one
	}
	one.closed = closed
	one.changes++
	g.mu.Unlock()
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Close logs what is not logged yet, and ends the goroutine.
func (g *Gates) Close() {
	g.once.Do(func() { close(g.stop) })
	g.wg.Wait()
}

// run logs what changes, once in gatesEvery at most.
func (g *Gates) run() {
	defer g.tell()
	for {
		select {
		case <-g.poke:
		case <-g.stop:
			return
		}
		g.tell()
		select {
		case <-time.After(gatesEvery):
		case <-g.stop:
			return
		}
	}
}

// tell logs the gates that have changed. More than one change means that a gate has
// flapped in between.
func (g *Gates) tell() {
	g.mu.Lock()
	changed := make(map[string]gate)
	for name, one := range g.gates {
		if one.changes > 0 {
			changed[name] = *one
			one.changes = 0
		}
	}
	g.mu.Unlock()
	for name, one := range changed {
		if one.closed {
			g.log.Warn("an admission gate has closed: what it guards is answered busy", "gate", name, "changes", one.changes)
		} else {
			g.log.Info("an admission gate is open again", "gate", name, "changes", one.changes)
		}
	}
}
