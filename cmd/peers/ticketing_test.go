package main

import (
	"bufio"
	"fmt"
	"net"
	"testing"
)

// greeter listens and greets each client with a ready frame that names leader.
func greeter(t *testing.T, leader func() string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "SHA-256 abcdefgh\n")
			bufio.NewReader(conn).ReadString('\n')
			fmt.Fprint(conn, leader())
		}
	}()
	return listener.Addr().String()
}

func TestAClientFindsTheLeader(t *testing.T) {
	var leader string
	leader = greeter(t, func() string { return "L" + leader + "\n" })
	follower := greeter(t, func() string { return "L" + leader + "\n" })
	single := greeter(t, func() string { return "\n" })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()

	for name, test := range map[string]struct {
		addrs []string
		want  string
	}{
		"asked first":              {[]string{leader, follower}, leader},
		"named by a follower":      {[]string{follower}, leader},
		"after a node that's dead": {[]string{gone.Addr().String(), follower}, leader},
		"a single server":          {[]string{single}, single},
	} {
		found, err := findLeader(t.Context(), test.addrs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found.conn.Close()
		if found.addr != test.want {
			t.Errorf("%s: found %s, want %s", name, found.addr, test.want)
		}
	}
}
