package link

import (
	"context"
	"net"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/sockopt"
)

// peerTimeout is how soon a peer that is gone without a word is noticed on a stream
// on which nobody waits for an answer.
const peerTimeout = 10 * time.Second

// keepAlive is silent while something is not acknowledged; UserTimeout bounds
// that, where there is such a thing.
var keepAlive = net.KeepAliveConfig{
	Enable: true,
	// Together peerTimeout: five unanswered probes after five quiet seconds.
	Idle: 5 * time.Second, Interval: time.Second, Count: 5,
}

func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: sockopt.UserTimeout(peerTimeout), KeepAliveConfig: keepAlive}
	return lc.Listen(ctx, "tcp", addr)
}

// dialTCP is what Config.DialContext is by default. It resolves names itself, each
// time, and tries a name's addresses one after the other.
func dialTCP(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Control: sockopt.UserTimeout(peerTimeout), KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, network, addr)
}

// loopback tells whether an address is this machine's own. One that is no IP
// address is taken for another machine's.
func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
