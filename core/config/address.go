package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ticketing-io/ticketing/core/wire"
)

// address is a host, which may be empty, and a port.
type address struct {
	host string
	port uint16
}

// parseAddress reads host:port, [v6]:port or :port. Its problem says what to write
// instead.
func parseAddress(s string) (a address, problem string) {
	if s == "" {
		return a, "is empty; write HOST:PORT, as in 127.0.0.1:5225"
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return a, quote(s) + " " + shapeProblem(s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return a, quote(s) + " has no port from 0 to 65535; write HOST:PORT, as in 127.0.0.1:5225"
	}
	if strings.HasPrefix(s, "[") {
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return a, quote(s) + " has no IPv6 address in its brackets; write it as in [::1]:5225"
		}
	}
	if host != "" && !validHost(host) {
		return a, quote(s) + " has no host name or IP address before its port; write HOST:PORT, as in 127.0.0.1:5225"
	}
	return address{host, uint16(n)}, ""
}

// shapeProblem says why s can't be split into host and port.
func shapeProblem(s string) string {
	switch {
	case strings.Contains(s, "://"):
		return "is a URL; write HOST:PORT, as in 127.0.0.1:5225"
	case strings.Count(s, ":") > 1:
		return "is ambiguous; write an IPv6 address in brackets and a port behind it, as in [::1]:5225"
	}
	return "has no port; write HOST:PORT, as in 127.0.0.1:5225"
}

// parseReachable reads an address that others are to dial: with a host that means
// this one machine, a port, and short enough for the wire's L and M
// (docs/PROTOCOL.md, section 2).
func parseReachable(s string) (a address, problem string) {
	a, problem = parseAddress(s)
	switch {
	case problem != "":
		return a, problem
	case a.everywhere():
		return a, quote(s) + " can't be dialled from elsewhere; write the name or address under which this node is reached"
	case a.port == 0:
		return a, quote(s) + " has port 0, which can't be dialled; write the port on which the node listens"
	case len(s) > wire.MaxAddr:
		return a, quote(s) + " is longer than " + strconv.Itoa(wire.MaxAddr) + " bytes; use a shorter name"
	}
	return a, ""
}

// loopback tells whether the address can be reached from this machine only. Of
// names that is certain only of localhost.
func (a address) loopback() bool {
	if strings.EqualFold(a.host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(a.host)
	return err == nil && ip.Unmap().IsLoopback()
}

// everywhere tells whether the address is every address of this machine.
func (a address) everywhere() bool {
	if a.host == "" {
		return true
	}
	ip, err := netip.ParseAddr(a.host)
	return err == nil && ip.Unmap().IsUnspecified()
}

// overlaps tells whether two listeners can't have both addresses.
func (a address) overlaps(b address) bool {
	return a.port == b.port && a.port != 0 &&
		(a.everywhere() || b.everywhere() || strings.EqualFold(a.host, b.host))
}

// maxHost is the longest host name of the domain name system, in bytes.
const maxHost = 253

// validHost tells whether host is an IP address or can be a host name. One whose
// last part is a number must be an IP address, so that 10.0.0.256 is not taken for
// a name.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if len(host) > maxHost {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if !validLabel(label) {
			return false
		}
	}
	_, err := strconv.ParseUint(labels[len(labels)-1], 10, 64)
	return err != nil
}

// maxLabel is the longest part of a host name, in bytes.
const maxLabel = 63

func validLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}
