package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// Replica is one node's part in the replicated state.
type Replica struct {
	opts      Options
	log       *slog.Logger
	service   Service
	proposing proposing
	serving   atomic.Bool
	fsm       atomic.Pointer[fsm] // of this generation or, between two, of the last one
	lock      *os.File            // the data folder's; nil where the stores are given

	leaderChanges atomic.Uint64 // how often this node came to know a leader

	changing chan struct{} // has a place for the one change of the members under way
	noting   sync.Mutex    // held while the note is changed, which takes a write

	mu         sync.Mutex
	generation *generation // nil between two
	why        error       // why there is none
	note       note
	storage    Storage
	peers      map[string]seen // what the others said last, by id

	stop   chan struct{}
	done   chan struct{}
	once   sync.Once
	cancel context.CancelFunc // of what Ask is called with
	ctx    context.Context
}

// New returns a replica that does nothing until Start. It takes the data folder for
// itself, and fails with ErrInUse when another process has it, and with ErrRemoved when
// this node was removed from its cluster.
func New(o Options) (*Replica, error) {
	r := &Replica{
		opts: o, log: o.Logger, peers: make(map[string]seen),
		proposing: proposing{kick: make(chan struct{}, 1)},
		changing:  make(chan struct{}, 1),
		stop:      make(chan struct{}), done: make(chan struct{}),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.opts.Level == 0 {
		r.opts.Level = lock.Level
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if r.opts.Stores == nil {
		if err := r.openDataDir(); err != nil {
			return nil, err
		}
	}
	n, err := readNote(r.opts.Notes)
	if err == nil {
		err = n.check(o.NodeID)
	}
	if err != nil {
		return nil, errors.Join(err, r.unlock())
	}
	r.note, r.storage = n, Empty
	if n.Prepared != "" {
		r.storage = Prepared
	}
	return r, nil
}

// openDataDir takes the data folder for this process.
func (r *Replica) openDataDir() error {
	dir := r.opts.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	file, err := lockDir(dir)
	if err != nil {
		return err
	}
	r.lock = file
	if r.opts.Room == nil {
		r.opts.Room = func() bool { return hasRoom(dir) }
	}
	if r.opts.Notes == nil {
		r.opts.Notes = noteInDir{filepath.Join(dir, noteFile)}
	}
	return nil
}

func (r *Replica) unlock() error {
	if r.lock == nil {
		return nil
	}
	return r.lock.Close()
}

// Start lets the replica take part. The service is told of its standing from here on.
func (r *Replica) Start(s Service) {
	r.service = s
	go r.run()
}

// reopenPause is how long a node waits before it opens its stores again after they
// failed, and between two looks at whether there is room.
const reopenPause = time.Second

// run lives through the generations.
func (r *Replica) run() {
	defer close(r.done)
	for {
		err := r.live()
		r.ended(err)
		switch {
		case errors.Is(err, errStopped):
			return
		case errors.Is(err, ErrRemoved), errors.Is(err, ErrEmptied), errors.Is(err, ErrTooNew), errors.Is(err, lock.ErrCorrupt), errors.Is(err, errHung):
			r.fatal(err)
			return
		}
		r.log.Error("this node stands aside until its disk works again", "error", err)
		if !r.awaitRoom() {
			return
		}
		r.log.Info("opening the data folder again")
	}
}

// ended keeps why there is no generation.
func (r *Replica) ended(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.generation, r.why = nil, err
}

// fatal tells why this node takes no part in the cluster any more: to whoever ends the
// process, who logs it.
func (r *Replica) fatal(err error) {
	if r.opts.Fatal != nil {
		r.opts.Fatal(err)
	}
}

// awaitRoom returns when the disk has room, or false when the node stops.
func (r *Replica) awaitRoom() bool {
	for {
		select {
		case <-r.stop:
			return false
		case <-time.After(reopenPause):
		}
		if r.opts.Room == nil || r.opts.Room() {
			return true
		}
	}
}

// current returns the generation that lives, or why there is none.
func (r *Replica) current() (*generation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generation != nil {
		return r.generation, nil
	}
	if r.why != nil {
		return nil, r.why
	}
	return nil, errNotStarted
}

var errNotStarted = errors.New("this node has not joined its cluster yet")

// Close ends the replica, and returns the context's error when that ended first. It
// hands nothing over: HandOver does, before.
func (r *Replica) Close(ctx context.Context) error {
	r.once.Do(func() { close(r.stop); r.cancel() })
	if r.service != nil {
		select {
		case <-r.done:
		case <-ctx.Done():
			return fmt.Errorf("stop the replica: %w", ctx.Err())
		}
	}
	return r.unlock()
}
