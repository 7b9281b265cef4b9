// Package config is everything an operator can set: one Config, its defaults, and
// Load, which puts it together from flags, the environment and one TOML file, in
// that order of precedence. Every fault is reported at once, each with the place
// where the value was set and what to do about it.
package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Ports besides wire.DefaultPort.
const (
	// DefaultAdminPort is the TCP port of the admin server and its console.
	DefaultAdminPort = 5280
	// DefaultClusterPort is the TCP port for the other nodes of a cluster.
	DefaultClusterPort = 5226
)

// Bounds of what is configured. Those of waiters and connections are the
// protocol's (docs/PROTOCOL.md, section 4; package wire).
const (
	// MinConnections is the lowest connection limit: a quarter of it is for
	// connections in their handshake, and must be at least one.
	MinConnections = wire.UnauthenticatedShare
	// MaxTokens is how many client tokens may be valid at once. Each handshake is
	// compared with all of them, so it bounds what a stranger's costs: 256 hashes,
	// some 50 µs.
	MaxTokens = 256
	// MaxTokenLen is the longest client token in bytes; it bounds each of those hashes.
	MaxTokenLen = 256
	// ShortToken is the length in bytes under which a client token is taken with a
	// warning: it can be guessed.
	ShortToken = 16
	// MaxName is the longest name of a token or a node, in bytes: names stand in
	// logs and tables.
	MaxName = 64
	// MaxMembers is how many members of a cluster may be configured. Each further
	// voter makes every commit slower, so real clusters have 3 to 7.
	MaxMembers = 15
	// MinRaftTimer and MaxRaftTimer bound cluster.heartbeat and cluster.election.
	// Shorter, and a busy disk or a pause of the garbage collector ends a leader;
	// longer, and clients give up before there is a new one.
	MinRaftTimer = 50 * time.Millisecond
	MaxRaftTimer = 5 * time.Second
	// MinLeaderLease is the lowest cluster.leader_lease; the highest is the heartbeat.
	MinLeaderLease = 25 * time.Millisecond
	// MinSnapshotInterval to MaxSnapshotThreshold bound when snapshots are written: not
	// all the time, and often enough that a restart reads a short log.
	MinSnapshotInterval  = time.Second
	MaxSnapshotInterval  = 10 * time.Minute
	MinSnapshotThreshold = 64
	MaxSnapshotThreshold = 100_000
	// MinTraceSlow to MaxTraceSlow bound which acquires are always traced: no more than can
	// be looked at, and none that can't be, since no wait is longer.
	MinTraceSlow = time.Millisecond
	MaxTraceSlow = 255 * time.Second
	// MaxAllowedHosts is how many host names the admin server may be told.
	MaxAllowedHosts = 64
	// MaxFile is the largest file in bytes that is read for a configuration.
	MaxFile = 1 << 20
)

// Values of Config.LogFormat.
const (
	LogText = "text"
	LogJSON = "json"
)

// Config is the configuration of one server. Default returns one that serves this
// machine only; Load fills it from file, environment and flags. What each field
// means is said by Keys.
type Config struct {
	Listen    string
	Advertise string

	// ClientTokens are all valid client tokens, those of ClientTokensFile
	// included. With none, exactly the empty token is valid (docs/PROTOCOL.md,
	// section 1).
	ClientTokens     []Token
	ClientTokensFile string

	MaxWaiters      int
	MaxTotalWaiters int
	MaxConnections  int

	Insecure  bool
	LogLevel  slog.Level
	LogFormat string

	TLS     TLS
	Admin   Admin
	Cluster Cluster
	Trace   Trace

	// sources tells where each key was set that is not at its default.
	sources map[string]source
}

// TLS is section [tls]: files in PEM form for the clients' listener. Without Cert
// and Key it speaks plain TCP.
type TLS struct {
	Cert, Key string
	// ClientCA, if set, makes every client show a certificate of that CA.
	ClientCA string
}

// Admin is section [admin]: the admin server and its console.
type Admin struct {
	Listen          string
	CredentialsFile string
	AllowedHosts    []string
	Cert, Key       string
}

// Cluster is section [cluster]: this node, and the members it knows at its first
// start.
type Cluster struct {
	NodeID        string
	DataDir       string
	Listen        string
	Members       []Member
	Cert, Key, CA string

	// Heartbeat, Election and LeaderLease are raft's timers: after how long without a
	// word of the leader a node calls an election, how long that lasts at least, and
	// after how long without word of a majority a leader steps down.
	Heartbeat, Election, LeaderLease time.Duration
	// SnapshotInterval and SnapshotThreshold say when a node writes a snapshot: looked
	// at so often, when so many entries came since the last.
	SnapshotInterval  time.Duration
	SnapshotThreshold int
}

// Trace is section [trace].
type Trace struct {
	// Sample is the part of acquires that is traced, 0 to 1.
	Sample float64
	// Slow is the wait from which an acquire is traced whatever Sample says.
	Slow time.Duration
	// HashKeys has traces show keys as their hash.
	HashKeys bool
}

// AdminChosen says whether the address of the admin server was set, and is not the
// default.
func (c *Config) AdminChosen() bool {
	_, ok := c.sources["admin.listen"]
	return ok
}

// Default returns the configuration of a server that is told nothing.
func Default() Config {
	return Config{
		Listen:          loopbackAddr(wire.DefaultPort),
		MaxWaiters:      wire.DefaultWaitersPerKey,
		MaxTotalWaiters: wire.DefaultWaiters,
		MaxConnections:  wire.DefaultConnections,
		LogLevel:        slog.LevelInfo,
		LogFormat:       LogText,
		Admin:           Admin{Listen: loopbackAddr(DefaultAdminPort)},
		Cluster: Cluster{
			Listen:            loopbackAddr(DefaultClusterPort),
			Heartbeat:         500 * time.Millisecond,
			Election:          500 * time.Millisecond,
			LeaderLease:       250 * time.Millisecond,
			SnapshotInterval:  10 * time.Second,
			SnapshotThreshold: 4096,
		},
		Trace: Trace{Sample: 0.01, Slow: time.Second},
	}
}

// Clustered tells whether anything of section [cluster] is set. If not, this is a
// single server.
func (c *Config) Clustered() bool {
	if _, ok := c.sectionSource("cluster"); ok {
		return true
	}
	one := c.Cluster
	return one.NodeID != "" || one.DataDir != "" || len(one.Members) > 0 ||
		one.Cert != "" || one.Key != "" || one.CA != ""
}

// sectionSource returns where a section, or else its first key, was set.
func (c *Config) sectionSource(section string) (at source, ok bool) {
	if at, ok = c.sources[section]; ok {
		return at, true
	}
	for _, k := range keys {
		if at, ok = c.sources[k.Name]; ok && k.Section() == section {
			return at, true
		}
	}
	return source{}, false
}

func loopbackAddr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
