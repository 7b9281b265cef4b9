package client

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ticketing-io/ticketing/core/wire"
)

// parseAddress checks the address of a server and adds the default port where
// there is none. It changes nothing else: addresses are compared as strings with
// what the nodes call themselves (docs/PROTOCOL.md, section 2, L).
func parseAddress(addr string) (string, error) {
	if addr == "" {
		return "", errors.New("it is empty")
	}
	if strings.ContainsFunc(addr, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' }) {
		return "", errors.New("it contains a space, a control character or bytes that are not UTF-8")
	}
	full := addr
	if ip, err := netip.ParseAddr(addr); err == nil || !strings.Contains(addr, ":") {
		host := addr
		if ip.IsValid() {
			host = ip.String()
		}
		full = net.JoinHostPort(host, strconv.Itoa(wire.DefaultPort))
	}
	host, port, err := net.SplitHostPort(full)
	if err != nil {
		return "", errors.New("it is not host:port")
	}
	if host == "" {
		return "", errors.New("it has no host")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("its port %q is not a number from 1 to 65535", port)
	}
	if len(full) > wire.MaxAddr {
		return "", fmt.Errorf("it is longer than %d bytes", wire.MaxAddr)
	}
	return full, nil
}
