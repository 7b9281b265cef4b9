package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Key is one thing that can be set: its names in the file, the environment and on
// the command line, and what is said of it.
type Key struct {
	Name    string // in the file, behind its section: "tls.cert"
	Env     string // environment variable
	Flag    string // flag, without its dashes
	Value   string // what stands for the value in help: "HOST:PORT"; empty for a switch
	Default string // as Env or Flag would take it; empty when unset
	Help    string // one sentence, without its full stop
	Reload  bool   // taken over on SIGHUP, without a restart
	Secret  bool   // never shown; the flag exists only to be refused

	in func(*Config) setting
}

// Section returns the key's section in the file, or "".
func (k Key) Section() string {
	section, _, ok := strings.Cut(k.Name, ".")
	if !ok {
		return ""
	}
	return section
}

// Switch tells whether the key is true or false, so that its flag needs no value.
func (k Key) Switch() bool { return k.Value == "" }

// Keys returns every key, in the order in which they are documented. Flags, the
// environment and the reference are all made from it.
func Keys() []Key { return slices.Clone(keys) }

// keys is the one table of what can be set. The names of environment variable and
// flag follow from the key's.
var keys = complete([]Key{
	{
		Name: "listen", Value: "HOST:PORT",
		Help: "address for clients; an empty host is every address of this machine",
		in:   func(c *Config) setting { return (*text)(&c.Listen) },
	},
	{
		Name: "advertise", Value: "HOST:PORT",
		Help: "address that a cluster tells clients for this node, where no member entry gives it",
		in:   func(c *Config) setting { return (*text)(&c.Advertise) },
	},
	{
		Name: "client_tokens", Value: "TOKEN,...", Reload: true, Secret: true,
		Help: "tokens of which a client must have one",
		in:   func(c *Config) setting { return (*tokenList)(&c.ClientTokens) },
	},
	{
		Name: "client_tokens_file", Value: "FILE", Reload: true,
		Help: "file of further client tokens, one a line, each TOKEN or NAME TOKEN",
		in:   func(c *Config) setting { return (*path)(&c.ClientTokensFile) },
	},
	{
		Name: "max_waiters", Value: "N",
		Help: fmt.Sprintf("most waiters of one key, 1 to %d", wire.MaxWaitersPerKey),
		in:   func(c *Config) setting { return (*count)(&c.MaxWaiters) },
	},
	{
		Name: "max_total_waiters", Value: "N",
		Help: fmt.Sprintf("most waiters in all, 1 to %d", wire.MaxWaiters),
		in:   func(c *Config) setting { return (*count)(&c.MaxTotalWaiters) },
	},
	{
		Name: "max_connections", Value: "N",
		Help: fmt.Sprintf("most client connections, %d to %d; a quarter of them may be in their handshake", MinConnections, wire.MaxConnections),
		in:   func(c *Config) setting { return (*count)(&c.MaxConnections) },
	},
	{
		Name: "insecure",
		Help: "serve other machines without client tokens, or a cluster without TLS",
		in:   func(c *Config) setting { return (*toggle)(&c.Insecure) },
	},
	{
		Name: "log_level", Value: "LEVEL", Reload: true,
		Help: "least severe messages to log: debug, info, warn or error",
		in:   func(c *Config) setting { return (*level)(&c.LogLevel) },
	},
	{
		Name: "log_format", Value: "FORMAT",
		Help: "form of the log: text or json",
		in:   func(c *Config) setting { return (*text)(&c.LogFormat) },
	},
	{
		Name: "tls.cert", Value: "FILE", Reload: true,
		Help: "certificate for clients, PEM, with its chain; plain TCP without it",
		in:   func(c *Config) setting { return (*path)(&c.TLS.Cert) },
	},
	{
		Name: "tls.key", Value: "FILE", Reload: true,
		Help: "private key of tls.cert, PEM",
		in:   func(c *Config) setting { return (*path)(&c.TLS.Key) },
	},
	{
		Name: "tls.client_ca", Value: "FILE", Reload: true,
		Help: "CA, PEM, of which every client must show a certificate",
		in:   func(c *Config) setting { return (*path)(&c.TLS.ClientCA) },
	},
	{
		Name: "admin.listen", Value: "HOST:PORT",
		Help: "address of the admin server and its console",
		in:   func(c *Config) setting { return (*text)(&c.Admin.Listen) },
	},
	{
		Name: "admin.credentials_file", Value: "FILE",
		Help: "file of admin credentials: name, role, hash and expiry of each",
		in:   func(c *Config) setting { return (*path)(&c.Admin.CredentialsFile) },
	},
	{
		Name: "admin.allowed_hosts", Value: "HOST,...",
		Help: "host names under which the admin server may be asked",
		in:   func(c *Config) setting { return (*list)(&c.Admin.AllowedHosts) },
	},
	{
		Name: "admin.cert", Value: "FILE",
		Help: "certificate of the admin server, PEM, with its chain",
		in:   func(c *Config) setting { return (*path)(&c.Admin.Cert) },
	},
	{
		Name: "admin.key", Value: "FILE",
		Help: "private key of admin.cert, PEM",
		in:   func(c *Config) setting { return (*path)(&c.Admin.Key) },
	},
	{
		Name: "cluster.node_id", Value: "ID",
		Help: "this node's id; no two nodes ever share one",
		in:   func(c *Config) setting { return (*text)(&c.Cluster.NodeID) },
	},
	{
		Name: "cluster.data_dir", Value: "DIR",
		Help: "folder for the node's log and snapshots",
		in:   func(c *Config) setting { return (*path)(&c.Cluster.DataDir) },
	},
	{
		Name: "cluster.listen", Value: "HOST:PORT",
		Help: "address for the other nodes",
		in:   func(c *Config) setting { return (*text)(&c.Cluster.Listen) },
	},
	{
		Name: "cluster.members", Value: "ID=RAFT=CLIENT[=ADMIN],...",
		Help: "the members at the first start, each with its addresses",
		in:   func(c *Config) setting { return (*memberList)(&c.Cluster.Members) },
	},
	{
		Name: "cluster.cert", Value: "FILE", Reload: true,
		Help: "this node's certificate for the other nodes, PEM",
		in:   func(c *Config) setting { return (*path)(&c.Cluster.Cert) },
	},
	{
		Name: "cluster.key", Value: "FILE", Reload: true,
		Help: "private key of cluster.cert, PEM",
		in:   func(c *Config) setting { return (*path)(&c.Cluster.Key) },
	},
	{
		Name: "cluster.ca", Value: "FILE", Reload: true,
		Help: "the cluster's own CA, PEM",
		in:   func(c *Config) setting { return (*path)(&c.Cluster.CA) },
	},
	{
		Name: "cluster.heartbeat", Value: "DURATION",
		Help: fmt.Sprintf("longest time without a word of the leader before a node calls an election, %v to %v; the same on all nodes", MinRaftTimer, MaxRaftTimer),
		in:   func(c *Config) setting { return (*span)(&c.Cluster.Heartbeat) },
	},
	{
		Name: "cluster.election", Value: "DURATION",
		Help: fmt.Sprintf("least time that an election is given, at least cluster.heartbeat, at most %v; the same on all nodes", MaxRaftTimer),
		in:   func(c *Config) setting { return (*span)(&c.Cluster.Election) },
	},
	{
		Name: "cluster.leader_lease", Value: "DURATION",
		Help: fmt.Sprintf("time without word of a majority after which a leader steps down, %v to cluster.heartbeat", MinLeaderLease),
		in:   func(c *Config) setting { return (*span)(&c.Cluster.LeaderLease) },
	},
	{
		Name: "cluster.snapshot_interval", Value: "DURATION",
		Help: fmt.Sprintf("how often a node looks whether to write a snapshot, %v to %v", MinSnapshotInterval, MaxSnapshotInterval),
		in:   func(c *Config) setting { return (*span)(&c.Cluster.SnapshotInterval) },
	},
	{
		Name: "cluster.snapshot_threshold", Value: "N",
		Help: fmt.Sprintf("log entries since the last snapshot that make a node write one, %d to %d; a restart reads that many again, or more after a busy interval", MinSnapshotThreshold, MaxSnapshotThreshold),
		in:   func(c *Config) setting { return (*count)(&c.Cluster.SnapshotThreshold) },
	},
	{
		Name: "trace.sample", Value: "FRACTION",
		Help: "part of the acquires that is traced, 0 to 1; the standard OTEL_* variables override it",
		in:   func(c *Config) setting { return (*fraction)(&c.Trace.Sample) },
	},
	{
		Name: "trace.slow", Value: "DURATION",
		Help: fmt.Sprintf("wait from which an acquire is traced whatever trace.sample says, %v to %v", MinTraceSlow, MaxTraceSlow),
		in:   func(c *Config) setting { return (*span)(&c.Trace.Slow) },
	},
	{
		Name: "trace.hash_keys",
		Help: "have traces show keys as their hash",
		in:   func(c *Config) setting { return (*toggle)(&c.Trace.HashKeys) },
	},
})

// complete fills in what follows from a key's name and from Default.
func complete(table []Key) []Key {
	defaults := Default()
	for i := range table {
		k := &table[i]
		k.Env = strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
		k.Flag = strings.NewReplacer(".", "-", "_", "-").Replace(k.Name)
		k.Default = k.in(&defaults).String()
	}
	return table
}

// sections are the sections of the file, in the order of their keys.
var sections = sectionsOf(keys)

func sectionsOf(table []Key) []string {
	var names []string
	for _, k := range table {
		if s := k.Section(); s != "" && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// lookup returns the key of a name in a section, or outside of sections.
func lookup(section, name string) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Section() == section && k.base() == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// base returns the key's name without its section.
func (k Key) base() string { return k.Name[strings.LastIndexByte(k.Name, '.')+1:] }

// unknownKey says what could be meant by a key that there is not.
func unknownKey(section, name string, v any) string {
	if _, ok := v.(map[string]any); ok && section == "" {
		return "unknown section; there are [" + strings.Join(sections, "], [") + "]"
	}
	var here, elsewhere []string
	for _, k := range keys {
		switch {
		case k.Section() == section && folded(k.base()) == folded(name):
			return "unknown key; it is spelled " + k.base()
		case k.Section() == section:
			here = append(here, k.base())
		case k.base() != name:
		case k.Section() == "":
			elsewhere = append(elsewhere, name+" above the first [section]")
		default:
			elsewhere = append(elsewhere, name+" in ["+k.Section()+"]")
		}
	}
	switch {
	case elsewhere != nil:
		return "unknown key here; there is " + strings.Join(elsewhere, ", ")
	case section == "":
		return "unknown key; outside of sections there are " + strings.Join(here, ", ")
	}
	return "unknown key; [" + section + "] has " + strings.Join(here, ", ")
}

// folded returns a key without what its other spellings differ in.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
}

// keyName writes a key of the file into a note, quoted where the file quotes it.
func keyName(name string) string {
	if validName(name) && !strings.Contains(name, ".") {
		return name
	}
	return quote(name)
}

// Hash returns a short hash of what is set, secrets left out: another one says that
// something was changed.
func (c Config) Hash() string {
	h := sha256.New()
	for _, k := range keys {
		if !k.Secret {
			fmt.Fprintf(h, "%s=%s\n", k.Name, k.in(&c))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// NeedRestart returns the names of the keys that differ between a running
// server's configuration and a newly loaded one, and that only a restart takes over.
func NeedRestart(running, loaded Config) []string {
	var names []string
	for _, k := range keys {
		if !k.Reload && k.in(&running).String() != k.in(&loaded).String() {
			names = append(names, k.Name)
		}
	}
	// A listener can take other certificates over, but not turn TLS on or off.
	if (running.TLS.Cert == "") != (loaded.TLS.Cert == "") {
		names = append(names, "tls.cert")
	}
	if (running.Cluster.Cert == "") != (loaded.Cluster.Cert == "") {
		names = append(names, "cluster.cert")
	}
	return names
}
