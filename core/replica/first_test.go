package replica

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// memoryNotes keeps a note in memory.
type memoryNotes struct{ data []byte }

func (m *memoryNotes) Read() ([]byte, error)   { return m.data, nil }
func (m *memoryNotes) Write(data []byte) error { m.data = data; return nil }

var three = []Member{
	{ID: "a", Raft: "a:1", Client: "a:2"},
	{ID: "b", Raft: "b:1", Client: "b:2"},
	{ID: "c", Raft: "c:1", Client: "c:2"},
}

func bare(t *testing.T, n note) *Replica {
	t.Helper()
	notes := &memoryNotes{}
	if n != (note{}) {
		if err := n.write(notes); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Options{NodeID: "a", Members: three, Notes: notes, Stores: func() (*Stores, error) { return nil, errors.New("none") }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A cluster begins when every member is there; a voter that was emptied is never taken
// for a new one.
func TestTheFirstStart(t *testing.T) {
	list := listDigest(three)
	empty := Peer{Storage: Empty, List: list}
	prepared := Peer{Storage: Prepared, List: list}
	counting := Peer{Storage: HasState, List: list, Voters: []string{"a", "b", "c"}}
	notCounting := Peer{Storage: HasState, List: list, Voters: []string{"b", "c"}}
	joining := Peer{Storage: HasState, List: list}
	other := Peer{Storage: Empty, List: "another"}
	down := errors.New("connection refused")

	for _, c := range []struct {
		name     string
		prepared bool
		unlisted bool
		b, c     Peer
		bErr     error
		want     step
		emptied  bool
	}{
		{name: "all are empty", b: empty, c: empty, want: stepPrepare},
		{name: "the others are prepared", b: prepared, c: prepared, want: stepPrepare},
		{name: "one does not answer", b: empty, bErr: down, c: empty, want: stepWait},
		{name: "one has another list", b: other, c: empty, want: stepWait},
		{name: "prepared, one is not yet", prepared: true, b: empty, c: prepared, want: stepWait},
		{name: "all are prepared", prepared: true, b: prepared, c: prepared, want: stepBootstrap},
		{name: "prepared, one has begun", prepared: true, b: counting, c: prepared, want: stepBootstrap},
		{name: "prepared, the others have begun", prepared: true, b: counting, c: counting, want: stepBootstrap},
		{name: "prepared, one has begun and one does not answer", prepared: true, b: empty, bErr: down, c: counting, want: stepBootstrap},
		{name: "prepared, one has begun without it and one does not answer", prepared: true, b: empty, bErr: down, c: notCounting, want: stepWait},
		{name: "emptied", b: counting, c: counting, want: stepWait, emptied: true},
		{name: "emptied, and another one does not answer", b: empty, bErr: down, c: counting, want: stepWait, emptied: true},
		{name: "emptied, and another one does not know that it was given a vote", b: notCounting, c: counting, want: stepWait, emptied: true},
		{name: "the same, the other way round", b: counting, c: notCounting, want: stepWait, emptied: true},
		{name: "one does not count on it, and the other does not answer", b: empty, bErr: down, c: notCounting, want: stepWait},
		{name: "in no list, emptied", unlisted: true, b: counting, c: notCounting, want: stepWait, emptied: true},
		{name: "in no list, new", unlisted: true, b: notCounting, c: notCounting, want: stepJoin},
		{name: "in no list, of which one does not answer", unlisted: true, b: empty, bErr: down, c: notCounting, want: stepWait},
		{name: "in no list, and there is no cluster yet", unlisted: true, b: empty, c: prepared, want: stepWait},
		{name: "the cluster does not count on it", b: notCounting, c: notCounting, want: stepJoin},
		{name: "another one joins as well", b: joining, c: empty, want: stepWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := note{}
			if c.prepared {
				n = note{NodeID: "a", Prepared: list}
			}
			c.b.ID, c.c.ID = "b", "c"
			r := bare(t, n)
			if c.unlisted {
				r.opts.Members = three[1:]
			}
			got, err := r.decide([]answer{{three[1], c.b, c.bErr}, {three[2], c.c, nil}})
			if got != c.want || errors.Is(err, ErrEmptied) != c.emptied {
				t.Errorf("step %d, %v", got, err)
			}
			if c.want == stepWait && err == nil {
				t.Error("it waits and does not say for what")
			}
		})
	}
}

// An address at which another node answers is named, not counted.
func TestAnotherNodeAtAMembersAddress(t *testing.T) {
	_, err := bare(t, note{}).decide([]answer{{three[1], Peer{ID: "c", Storage: Empty, List: listDigest(three)}, nil}})
	if err == nil || !strings.Contains(err.Error(), "b at b:1, where c answers") {
		t.Error(err)
	}
}

// A note says who the node is, and that it was removed.
func TestTheNote(t *testing.T) {
	for _, c := range []struct {
		name, note string
		removed    bool
		text       string
	}{
		{name: "another node's", note: `{"node_id":"b"}`, text: `is of node "b"`},
		{name: "removed", note: `{"node_id":"a","removed":true}`, removed: true, text: "new id"},
		{name: "no note", note: `{`, text: "read the node's note"},
	} {
		_, err := New(Options{NodeID: "a", Notes: &memoryNotes{[]byte(c.note)}, Stores: func() (*Stores, error) { return nil, nil }})
		if err == nil || errors.Is(err, ErrRemoved) != c.removed || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	dir := t.TempDir()
	notes := noteInDir{dir + "/" + noteFile}
	want := note{NodeID: "a", Prepared: "x", Began: true}
	if err := want.write(notes); err != nil {
		t.Fatal(err)
	}
	if got, err := readNote(notes); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := readNote(noteInDir{dir + "/none"}); got != (note{}) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// Two processes never have one data folder.
func TestADataFolderHasOneProcess(t *testing.T) {
	dir := t.TempDir()
	first, err := New(Options{NodeID: "a", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{NodeID: "a", DataDir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	second, err := New(Options{NodeID: "a", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	second.Close(context.Background())
}
