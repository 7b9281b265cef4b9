package link

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A peer that is gone without a word is noticed after 10 s, on both sides of a stream:
// by keep-alive when nothing is under way to it, and else by what it has not
// acknowledged, for which keep-alive waits a quarter of an hour.
func TestAPeerThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	n1 := start(t, Config{NodeID: "n1"})
	n2 := start(t, Config{NodeID: "n2", Listen: "127.0.0.1:0"})
	raft := n2.Raft()
	near := dial(t, n1, Raft, n2.Addr().String(), "n2")
	for side, c := range map[string]*Conn{"dialed": near, "accepted": accept(t, raft)} {
		raw, err := c.raw.(*net.TCPConn).SyscallConn()
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
			t.Errorf("%s: keep-alive is off", side)
		}
		idle := get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		probes := get(unix.IPPROTO_TCP, unix.TCP_KEEPCNT) * get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
		if got := time.Duration(idle+probes) * time.Second; got != 10*time.Second {
			t.Errorf("%s: an idle peer is noticed after %v", side, got)
		}
		if got := time.Duration(get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)) * time.Millisecond; got != 10*time.Second {
			t.Errorf("%s: what is not acknowledged is waited for %v", side, got)
		}
	}
}
