package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	noteFile = "node.json"
	lockFile = "lock"
	// maxNote is the largest note in bytes that is read.
	maxNote = 1 << 16
)

// note is what a node keeps beside raft's state, in a file of its own.
type note struct {
	NodeID string `json:"node_id"`
	// Prepared is the list of members with which this node prepared the cluster's first
	// start, as listDigest makes it; empty before.
	Prepared string `json:"prepared,omitempty"`
	// Began: there was state. Without it the node has forgotten what it acknowledged.
	Began bool `json:"began,omitempty"`
	// Removed: the cluster said that this node was removed.
	Removed bool `json:"removed,omitempty"`
}

// check says whether a node of this id may go on with what the note says.
func (n note) check(id string) error {
	switch {
	case n.NodeID != "" && n.NodeID != id:
		return fmt.Errorf("the data folder is of node %q, not of %q", n.NodeID, id)
	case n.Removed:
		return fmt.Errorf("%w: give it a new id and an empty data folder, and add it again", ErrRemoved)
	}
	return nil
}

// Notes keeps a node's note, a small text. What Write wrote must outlive a crash.
type Notes interface {
	// Read returns what was written last, nil when nothing was.
	Read() ([]byte, error)
	Write([]byte) error
}

// readNote reads a note; there may be none.
func readNote(from Notes) (n note, err error) {
	data, err := from.Read()
	if err != nil || data == nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("read the node's note: %w", err)
	}
	return n, nil
}

// write makes the note durable.
func (n note) write(to Notes) error {
	data, err := json.MarshalIndent(n, "", "  ")
	if err == nil {
		err = to.Write(append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the node's note: %w", err)
	}
	return nil
}

// noteInDir is a note in the data folder.
type noteInDir struct{ path string }

func (f noteInDir) Read() ([]byte, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's note: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxNote))
	if err != nil {
		return nil, fmt.Errorf("read the node's note: %w", err)
	}
	return data, nil
}

func (f noteInDir) Write(data []byte) error { return writeDurably(f.path, data) }

// writeDurably replaces a file as a whole.
func writeDurably(path string, data []byte) error {
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
