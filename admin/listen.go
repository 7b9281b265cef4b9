package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ErrExposed: the address can be reached from other machines.
var ErrExposed = errors.New("the admin server has no credentials and listens on loopback only")

// Listen listens on a TCP address. It fails with ErrExposed when that is not on loopback.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", addr, err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("listen on %s: %w", addr, ErrExposed)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	// A name is what the resolver makes of it.
	if !onLoopback(ln) {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", addr, ErrExposed), ln.Close())
	}
	return ln, nil
}

// isLoopback tells whether a host is this machine for itself only, by its name or its
// address.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func onLoopback(ln net.Listener) bool {
	host, _, err := net.SplitHostPort(ln.Addr().String())
	return err == nil && isLoopback(host)
}
