package server

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A peer that is gone without a word is noticed after 30 s: by keep-alive when
// nothing is under way to it, and else by what it has not acknowledged, for which
// keep-alive waits a quarter of an hour.
func TestAPeerThatIsGoneIsNoticed(t *testing.T) {
	ln, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	raw, err := accepted.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	get := func(level, option int) (value int) {
		t.Helper()
		var getErr error
		if err := raw.Control(func(fd uintptr) { value, getErr = unix.GetsockoptInt(int(fd), level, option) }); err != nil || getErr != nil {
			t.Fatalf("getsockopt: %v, %v", err, getErr)
		}
		return value
	}
	if get(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 {
		t.Error("keep-alive is off")
	}
	idle := get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	probes := get(unix.IPPROTO_TCP, unix.TCP_KEEPCNT) * get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
	if got := time.Duration(idle+probes) * time.Second; got != 30*time.Second {
		t.Errorf("an idle peer is noticed after %v, want 30 s", got)
	}
	if got := time.Duration(get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)) * time.Millisecond; got != 30*time.Second {
		t.Errorf("what is not acknowledged is waited for %v, want 30 s", got)
	}
}
