package server

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/ticketing-io/ticketing/core/internal/sockopt"
)

// peerTimeout is how soon a peer that is gone without a word is noticed, so that
// its waiters leave.
const peerTimeout = 30 * time.Second

// Listen listens on a TCP address for Serve.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{
		// Keep-alive is silent while something is not acknowledged; UserTimeout
		// bounds that, where there is such a thing. Connections inherit both.
		Control: sockopt.UserTimeout(peerTimeout),
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true,
			// Together peerTimeout: half of it quiet, then three unanswered probes.
			Idle: peerTimeout / 2, Interval: peerTimeout / 6, Count: 3,
		},
	}
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return ln, nil
}
