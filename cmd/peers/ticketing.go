package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// ticketing speaks docs/PROTOCOL.md on one connection a worker, without the
// client library and without core/wire, so that the figure is the server's and
// a fault of the codec can't hide in both ends. The client token comes from
// TICKETING_TOKEN.
type ticketing struct {
	conn   net.Conn
	addr   string
	reader *bufio.Reader
	owner  uint64
	frame  []byte // the request being sent
}

const (
	ticketingWait  = 60 // seconds in the queue, never reached in the loop
	ticketingLease = 30 // seconds, as lease

	// maxRedirects bounds how often a client is sent on to another leader.
	maxRedirects = 8
	// handshakeTime is how long a server may take to greet: a node that is stopped
	// takes connections, and says nothing.
	handshakeTime = 2 * time.Second
	// leaderPatience is how long a cluster may be without a leader.
	leaderPatience = 20 * time.Second
	// leaderPause is between two looks for one.
	leaderPause = 20 * time.Millisecond
)

// openTicketing opens a session to the server that serves: of one address that
// server, of the addresses of a cluster's nodes the leader.
func openTicketing(ctx context.Context, addrs []string) (locker, error) {
	return findLeader(ctx, addrs)
}

// findLeader asks every address, until one leads to a server that serves.
func findLeader(ctx context.Context, addrs []string) (*ticketing, error) {
	late := time.After(leaderPatience)
	for {
		var failures []error
		for _, addr := range addrs {
			t, err := followTicketing(ctx, addr)
			if err == nil {
				return t, nil
			}
			failures = append(failures, fmt.Errorf("%s: %w", addr, err))
		}
		select {
		case <-late:
			return nil, errors.Join(failures...)
		case <-ctx.Done():
			return nil, errors.Join(failures...)
		case <-time.After(leaderPause):
		}
	}
}

// followTicketing opens a session to an address and, where that is a node of a
// cluster, follows its ready frame to the leader.
func followTicketing(ctx context.Context, addr string) (*ticketing, error) {
	for range maxRedirects {
		t, leader, err := dialTicketing(ctx, addr)
		if err != nil {
			return nil, err
		}
		if leader == "" || leader == addr {
			return t, nil
		}
		t.conn.Close()
		addr = leader
	}
	return nil, fmt.Errorf("sent on %d times, last to %s", maxRedirects, addr)
}

// dialTicketing opens a session and returns the leader that its ready frame
// names, or "" for a single server.
func dialTicketing(ctx context.Context, addr string) (*ticketing, string, error) {
	greeting, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conn, err := dial(greeting, addr)
	if err != nil {
		return nil, "", err
	}
	t := &ticketing{conn: conn, addr: addr, reader: bufio.NewReader(conn)}
	leader, err := t.greet()
	if err == nil {
		deadline, _ := ctx.Deadline() // none is none for the connection, too
		err = conn.SetDeadline(deadline)
	}
	if err != nil {
		conn.Close()
		return nil, "", err
	}
	return t, leader, nil
}

// greet does the handshake and returns the leader that the ready frame names.
func (t *ticketing) greet() (leader string, err error) {
	challenge, err := t.reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	_, nonce, _ := strings.Cut(strings.TrimSuffix(challenge, "\n"), " ")
	sum := sha256.Sum256([]byte(os.Getenv("TICKETING_TOKEN") + nonce))
	if _, err := io.WriteString(t.conn, base64.RawURLEncoding.EncodeToString(sum[:])+"\n"); err != nil {
		return "", err
	}
	ready, err := t.reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	ready = strings.TrimSuffix(ready, "\n")
	if ready != "" && ready[0] != 'L' {
		return "", fmt.Errorf("ready frame %q", ready)
	}
	return strings.TrimPrefix(ready, "L"), nil
}

func (t *ticketing) lock(_ context.Context, key string) (func() error, error) {
	t.acquire(key, ticketingWait, ticketingLease)
	op, token, err := t.ask()
	if err != nil {
		return nil, err
	}
	if op != 'A' {
		return nil, fmt.Errorf("answered %c", op)
	}
	return func() error { return t.unlock(key, token) }, nil
}

// acquire makes the frame of the next request.
func (t *ticketing) acquire(key string, wait, lease byte) {
	t.owner++
	t.frame = append(t.frame[:0], 'A', wait, lease)
	t.frame = binary.BigEndian.AppendUint64(t.frame, t.owner)
	t.frame = append(append(t.frame, key...), '\n')
}

func (t *ticketing) unlock(key string, token uint64) error {
	t.frame = append(t.frame[:0], 'R')
	t.frame = binary.BigEndian.AppendUint64(t.frame, token)
	t.frame = append(append(t.frame, key...), '\n')
	op, _, err := t.ask()
	if err == nil && op != 'R' {
		err = fmt.Errorf("answered %c", op)
	}
	return err
}

// ask sends the frame and reads its answer.
func (t *ticketing) ask() (op byte, number uint64, err error) {
	if _, err := t.conn.Write(t.frame); err != nil {
		return 0, 0, err
	}
	return t.answer()
}

// answer reads one reply, giving its op and the first number of its header.
func (t *ticketing) answer() (op byte, number uint64, err error) {
	if op, err = t.readOp(); err != nil {
		return 0, 0, err
	}
	var header [16]byte
	if _, err := io.ReadFull(t.reader, header[:headerOf(op)]); err != nil {
		return 0, 0, err
	}
	text, err := t.reader.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if op == 'E' || op == 'M' {
		return op, 0, fmt.Errorf("answered %c %s", op, strings.TrimSuffix(string(text), "\n"))
	}
	return op, binary.BigEndian.Uint64(header[:8]), nil
}

// readOp reads the first byte of the next answer: keep-alives and notices of a
// leader are none.
func (t *ticketing) readOp() (byte, error) {
	for {
		op, err := t.reader.ReadByte()
		if err != nil {
			return 0, err
		}
		switch op {
		case '\n':
		case 'L':
			if _, err := t.reader.ReadSlice('\n'); err != nil {
				return 0, err
			}
		default:
			return op, nil
		}
	}
}

func headerOf(op byte) int {
	switch op {
	case 'A':
		return 16
	case 'T', 'B', 'R', 'N':
		return 8
	}
	return 0
}
