package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// What cluster.sh needs to know of a cluster of Ticketing, and to do to it.

// holdLease is the longest lease, in seconds.
const holdLease = 250

// holdAhead is how many keys are asked for before their answers are read: fewer
// than a server keeps replies for.
const holdAhead = 128

// printLeader prints the client address of the node that leads.
func printLeader(addrs []string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t, err := findLeader(ctx, addrs)
	if err != nil {
		return err
	}
	defer t.conn.Close()
	_, err = fmt.Fprintln(out, t.addr)
	return err
}

// printReady takes and gives back a lock, however often it has to try, and prints
// the seconds that it took.
func printReady(addrs []string, out io.Writer) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := takeOnce(ctx, addrs)
		if err == nil {
			_, err = fmt.Fprintf(out, "%.3f\n", time.Since(start).Seconds())
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leaderPause):
		}
	}
}

func takeOnce(ctx context.Context, addrs []string) error {
	t, err := findLeader(ctx, addrs)
	if err != nil {
		return err
	}
	defer t.conn.Close()
	unlock, err := t.lock(ctx, "ready")
	if err != nil {
		return err
	}
	return unlock()
}

// holdKeys takes n keys, which stay held until their lease ends: the end of a
// connection gives nothing back.
func holdKeys(addrs []string, n string) error {
	count, err := strconv.Atoi(n)
	if err != nil {
		return fmt.Errorf("number of keys %q: %w", n, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t, err := findLeader(ctx, addrs)
	if err != nil {
		return err
	}
	defer t.conn.Close()
	requests := bufio.NewWriter(t.conn)
	for asked := 0; asked < count; {
		batch := min(holdAhead, count-asked)
		for range batch {
			t.acquire("held-"+strconv.Itoa(asked), 0, holdLease)
			requests.Write(t.frame) // an error of it is Flush's
			asked++
		}
		if err := requests.Flush(); err != nil {
			return err
		}
		for range batch {
			if op, _, err := t.answer(); err != nil || op != 'A' {
				return fmt.Errorf("hold one of %d keys: answered %q (%v)", count, op, err)
			}
		}
	}
	return nil
}
