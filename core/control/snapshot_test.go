package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// large is a snapshot of several pieces.
var large = bytes.Repeat([]byte("0123456789abcdef"), 10_000)

// both runs a test against the leader and by way of a follower.
func both(t *testing.T, test func(t *testing.T, leader *member, c *Client)) {
	for _, node := range []string{"a", "b"} {
		t.Run(node, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, n *network) {
				leader := n.member("a", "a")
				n.member("b", "a")
				test(t, leader, n.operator(node))
			})
		})
	}
}

func TestLargeSnapshotsPass(t *testing.T) {
	both(t, func(t *testing.T, leader *member, c *Client) {
		leader.snapshot = large
		var saved bytes.Buffer
		if err := c.SaveSnapshot(t.Context(), &saved); err != nil || !bytes.Equal(saved.Bytes(), large) {
			t.Errorf("%d bytes, %v", saved.Len(), err)
		}
		if err := c.RestoreSnapshot(t.Context(), bytes.NewReader(large), false); err != nil || !bytes.Equal(leader.restored, large) {
			t.Errorf("%d bytes, %v", len(leader.restored), err)
		}
		if got := leader.calls(); got[1] != "restore, waive false" {
			t.Errorf("the quiet period was waived: %q", got)
		}
	})
}

// Half of a snapshot is never taken for all of it.
func TestASnapshotThatBreaksOffIsAnError(t *testing.T) {
	both(t, func(t *testing.T, leader *member, c *Client) {
		leader.save = func(_ context.Context, w io.Writer) error {
			_, _ = w.Write(large)
			return errors.New("disk")
		}
		is(t, c.SaveSnapshot(t.Context(), io.Discard), Elsewhere)
	})
}

func TestASnapshotBeyondItsLimit(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		m := n.member("a", "a")
		m.save = func(_ context.Context, w io.Writer) error {
			for {
				if _, err := w.Write(large); err != nil {
					return err
				}
			}
		}
		if err := n.operator("a").SaveSnapshot(t.Context(), io.Discard); err == nil {
			t.Error("saved")
		}
		m.restore = func(_ context.Context, r io.Reader) error {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return Refuse("", "read: %w", err)
			}
			return nil
		}
		endless := io.LimitReader(zeros{}, MaxSnapshot+1)
		if err := n.operator("a").RestoreSnapshot(t.Context(), endless, false); err == nil {
			t.Error("restored")
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Whoever stops reading or writing in the middle is let go.
func TestAStalledSnapshotEnds(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		m := n.member("a", "a")
		ended := make(chan time.Duration, 1)
		m.save = func(_ context.Context, w io.Writer) error {
			start := time.Now()
			var err error
			for err == nil {
				_, err = w.Write(large)
			}
			ended <- time.Since(start)
			return err
		}
		stuck := make(chan struct{})
		go func() { _ = n.operator("a").SaveSnapshot(context.Background(), stuckWriter(stuck)) }()
		if took := <-ended; took > StallTime+time.Second {
			t.Errorf("the node went on for %v", took)
		}
		close(stuck)
		synctest.Wait() // the node has let it go: there is one snapshot at a time

		m.restore = func(_ context.Context, r io.Reader) error {
			start := time.Now()
			_, err := io.Copy(io.Discard, r)
			ended <- time.Since(start)
			return err
		}
		quiet, w := io.Pipe()
		go func() { _ = n.operator("a").RestoreSnapshot(context.Background(), quiet, false) }()
		_, _ = w.Write([]byte("begin"))
		if took := <-ended; took > StallTime+time.Second {
			t.Errorf("the node went on for %v", took)
		}
		w.Close()
	})
}

type stuckWriter chan struct{}

func (s stuckWriter) Write(p []byte) (int, error) {
	<-s
	return 0, errors.New("stuck")
}

// A node takes its time with a snapshot that it has read: that its connection is
// silent meanwhile is no reason to give up.
func TestARestoreMayTakeLonger(t *testing.T) {
	both(t, func(t *testing.T, leader *member, c *Client) {
		leader.restore = func(ctx context.Context, r io.Reader) error {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return err
			}
			select {
			case <-time.After(3 * StallTime):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := c.RestoreSnapshot(t.Context(), bytes.NewReader(large), false); err != nil {
			t.Error(err)
		}
	})
}

// A restore that is refused before it reads does not have the file sent for nothing;
// one that is refused in the middle says why all the same.
func TestARefusedRestoreSaysWhy(t *testing.T) {
	both(t, func(t *testing.T, leader *member, c *Client) {
		leader.err = Refuse("Restore into a new cluster.", "the cluster has granted locks")
		sent := &counted{r: bytes.NewReader(large)}
		if e := is(t, c.RestoreSnapshot(t.Context(), sent, false), Refused); e.Text != "the cluster has granted locks" || sent.n != 0 {
			t.Errorf("%+v, %d bytes sent", e, sent.n)
		}
		leader.err = nil
		leader.restore = func(_ context.Context, r io.Reader) error {
			_, _ = io.ReadFull(r, make([]byte, 10))
			return Refuse("", "not a snapshot")
		}
		if e := is(t, c.RestoreSnapshot(t.Context(), bytes.NewReader(large), false), Refused); e.Text != "not a snapshot" {
			t.Errorf("%+v", e)
		}
	})
}

type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// One snapshot at a time: each is a copy of the table.
func TestOneSnapshotAtATime(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		m := n.member("a", "a")
		m.hold = make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- n.operator("a").SaveSnapshot(context.Background(), io.Discard) }()
		synctest.Wait()
		is(t, n.operator("a").SaveSnapshot(t.Context(), io.Discard), Refused)
		is(t, n.operator("a").RestoreSnapshot(t.Context(), strings.NewReader("x"), false), Refused)
		close(m.hold)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := n.operator("a").SaveSnapshot(t.Context(), io.Discard); err != nil {
			t.Error(err)
		}
	})
}
