package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Validate reports every fault of a configuration at once; its error is Faults.
// It reads the certificates that the configuration names, but not
// ClientTokensFile: Load does both, and whoever makes a Config in code calls this.
func (c *Config) Validate() error {
	k := checker{c: c}
	k.all()
	return k.err()
}

// checker holds a configuration against every rule.
type checker struct {
	c *Config
	// unread are the keys with a value that could not be read. Their fault is
	// told already; rules that would only follow from it say nothing.
	unread   map[string]bool
	faults   Faults
	warnings Warnings
}

func (k *checker) all() {
	k.listeners()
	k.clientTokens()
	k.limits()
	k.tls()
	k.admin()
	k.cluster()
	k.trace()
	k.exposure()
	k.unbuilt()
}

func (k *checker) err() error {
	if len(k.faults) == 0 {
		return nil
	}
	sortNotes(k.faults)
	return k.faults
}

func (k *checker) sorted() Warnings {
	sortNotes(k.warnings)
	return k.warnings
}

// at returns where a key, or an entry of one such as "cluster.members.1", was set.
func (k *checker) at(path string) source {
	if k.c.sources == nil {
		return source{}
	}
	if slices.Contains(sections, path) {
		at, _ := k.c.sectionSource(path)
		return at
	}
	for p := path; p != ""; p = p[:max(0, strings.LastIndexByte(p, '.'))] {
		if s, ok := k.c.sources[p]; ok {
			return s
		}
	}
	return source{"default", rankNone}
}

func (k *checker) note(path, text string) Note {
	at := k.at(path)
	return Note{strings.TrimRight(path, ".0123456789"), at.text, text, at.order}
}

func (k *checker) fault(path, format string, args ...any) {
	if !k.unread[path] {
		k.faults = append(k.faults, k.note(path, fmt.Sprintf(format, args...)))
	}
}

func (k *checker) warn(path, format string, args ...any) {
	k.warnings = append(k.warnings, k.note(path, fmt.Sprintf(format, args...)))
}

// limits checks the limits that an operator sets (docs/PROTOCOL.md, section 4), and
// how to log.
func (k *checker) limits() {
	k.inRange("max_waiters", k.c.MaxWaiters, 1, wire.MaxWaitersPerKey)
	k.inRange("max_total_waiters", k.c.MaxTotalWaiters, 1, wire.MaxWaiters)
	k.inRange("max_connections", k.c.MaxConnections, MinConnections, wire.MaxConnections)
	if f := k.c.LogFormat; f != LogText && f != LogJSON {
		k.fault("log_format", "%s is no form of log; set text or json", quote(f))
	}
}

func (k *checker) inRange(key string, n, low, high int) {
	if n < low || n > high {
		k.fault(key, "%d is out of range; set %d to %d", n, low, high)
	}
}

// listeners checks the addresses, and that no two of them are the same.
func (k *checker) listeners() {
	bound := []string{"listen", "admin.listen"}
	if k.c.Clustered() {
		bound = append(bound, "cluster.listen")
	}
	seen := map[string]address{}
	for i, key := range bound {
		s := k.text(key)
		a, problem := parseAddress(s)
		if problem != "" {
			k.fault(key, "%s", problem)
			continue
		}
		seen[key] = a
		for _, other := range bound[:i] {
			if b, ok := seen[other]; ok && a.overlaps(b) {
				k.fault(k.later(key, other), "%s and %s can't both listen on port %d; give one of them another port", other, key, a.port)
			}
		}
	}
	if s := k.c.Advertise; s != "" {
		if _, problem := parseReachable(s); problem != "" {
			k.fault("advertise", "%s", problem)
		} else if !k.c.Clustered() {
			k.warn("advertise", "a single server names no address to its clients; this has no effect without [cluster]")
		}
	}
}

// later returns the one of two keys that was set, rather than left at its default.
func (k *checker) later(a, b string) string {
	if _, ok := k.c.sources[a]; !ok {
		return b
	}
	return a
}

// text returns a key's value as text.
func (k *checker) text(key string) string {
	for _, known := range keys {
		if known.Name == key {
			return known.in(k.c).String()
		}
	}
	panic("config: no key " + key)
}

// clientTokens checks each client token, and all of them together.
func (k *checker) clientTokens() {
	tokens := k.c.ClientTokens
	if len(tokens) > MaxTokens {
		k.fault("client_tokens", "%d tokens, with those of client_tokens_file; keep at most %d", len(tokens), MaxTokens)
		return
	}
	bySecret, byName := map[string]Token{}, map[string]bool{}
	fromFile := false
	for i, t := range tokens {
		n, what := k.note(fmt.Sprintf("client_tokens.%d", i), ""), fmt.Sprintf("token %d ", i+1)
		if t.at.text != "" {
			fromFile = true
			n, what = Note{tokensFileKey, t.at.text, "", t.at.order}, "the token "
		}
		secret := string(t.bytes())
		twin, twice := bySecret[secret]
		n.Text = what + secretProblem([]byte(secret))
		switch {
		case n.Text != what:
			k.faults = append(k.faults, n)
		case twice:
			n.Text = what + "is the same as that of " + twin.Name() + "; remove one of them"
			k.faults = append(k.faults, n)
		case t.name != "" && byName[t.name]:
			n.Text = what + "has the name " + t.name + ", as another has; logs could not tell them apart, so rename one"
			k.faults = append(k.faults, n)
		case len(secret) < ShortToken:
			n.Text = fmt.Sprintf("%sis shorter than %d bytes and can be guessed; choose a random one, as from: openssl rand -hex 24", what, ShortToken)
			k.warnings = append(k.warnings, n)
		}
		bySecret[secret], byName[t.name] = t, true
	}
	if name := k.c.ClientTokensFile; name != "" && !fromFile {
		k.fault(tokensFileKey, "%s has no token; add one, or remove this key if anyone may take locks", quote(name))
	}
}

// exposure checks who can reach the server: by default nobody on other machines,
// unless they have a token or, as a node, a certificate. Where insecure waives
// that, it warns.
func (k *checker) exposure() {
	open := k.openToClients()
	if k.openToNodes() {
		open = true
	}
	if k.c.Insecure && !open && !k.tokensUnread() {
		k.warn("insecure", "nothing needs it; remove it, lest a later change open the server unseen")
	}
}

func (k *checker) tokensUnread() bool {
	return k.unread["client_tokens"] || k.unread[tokensFileKey]
}

// openToClients tells whether other machines need no client token.
func (k *checker) openToClients() bool {
	listen, problem := parseAddress(k.c.Listen)
	if problem != "" || listen.loopback() {
		return false
	}
	if len(k.c.ClientTokens) > 0 || k.c.ClientTokensFile != "" || k.tokensUnread() {
		return false
	}
	switch {
	case k.c.Insecure:
		k.warn("insecure", "whoever can reach %s can take and release locks; set client_tokens_file to stop that", k.c.Listen)
	case !k.unread["insecure"]:
		k.fault("listen", "%s can be reached from other machines, and there are no client tokens; set client_tokens_file, or listen on %s, or set insecure = true to let anyone take and release locks",
			quote(k.c.Listen), loopbackAddr(int(listen.port)))
	}
	return true
}

// admin checks section [admin]: elsewhere than on this machine the admin server
// listens only with TLS and credentials.
func (k *checker) admin() {
	a := k.c.Admin
	k.pair("admin.cert", a.Cert, "admin.key", a.Key)
	if a.CredentialsFile != "" {
		if _, mode, problem := readFile(a.CredentialsFile); problem != "" {
			k.fault("admin.credentials_file", "%s", problem)
		} else if problem := exposed(a.CredentialsFile, mode); problem != "" {
			k.warn("admin.credentials_file", "%s", problem)
		}
	}
	if n := len(a.AllowedHosts); n > MaxAllowedHosts {
		k.fault("admin.allowed_hosts", "%d hosts; keep at most %d", n, MaxAllowedHosts)
		return
	}
	for i, host := range a.AllowedHosts {
		if !validHost(host) {
			k.fault(fmt.Sprintf("admin.allowed_hosts.%d", i), "entry %d, %s, is no host name or IP address; write it without scheme, port and path, as in locks.example.com", i+1, quote(host))
		}
	}
	listen, problem := parseAddress(a.Listen)
	if problem != "" || listen.loopback() {
		return
	}
	var missing []string
	for _, m := range []struct{ key, value string }{{"admin.cert", a.Cert}, {"admin.key", a.Key}, {"admin.credentials_file", a.CredentialsFile}} {
		if m.value == "" && !k.unread[m.key] {
			missing = append(missing, m.key)
		}
	}
	if missing != nil {
		k.fault("admin.listen", "%s can be reached from other machines, which takes TLS and credentials; set %s, or listen on %s",
			quote(a.Listen), strings.Join(missing, ", "), loopbackAddr(int(listen.port)))
	}
}

// trace checks section [trace].
func (k *checker) trace() {
	if s := k.c.Trace.Sample; !(s >= 0 && s <= 1) {
		k.fault("trace.sample", "%v is out of range; set 0 (none) to 1 (every acquire)", s)
	}
	if s := k.c.Trace.Slow; s < MinTraceSlow || s > MaxTraceSlow {
		k.fault("trace.slow", "%v is out of range; set %v to %v", s, MinTraceSlow, MaxTraceSlow)
	}
}
