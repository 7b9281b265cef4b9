package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// env makes a lookup of pairs NAME, value.
func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNothingConfiguredServesThisMachineOnly(t *testing.T) {
	c, warnings, err := Load(Sources{})
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	if c.Listen != "127.0.0.1:5225" || c.Admin.Listen != "127.0.0.1:5280" || c.Insecure || c.Clustered() {
		t.Errorf("got %+v", c)
	}
	d := Default()
	if err := d.Validate(); err != nil {
		t.Errorf("the defaults are faulty: %v", err)
	}
}

// The keys, their environment names and their flags are those of the house plan.
func TestKeys(t *testing.T) {
	want := strings.Fields(`
		listen LISTEN listen
		advertise ADVERTISE advertise
		client_tokens CLIENT_TOKENS client-tokens
		client_tokens_file CLIENT_TOKENS_FILE client-tokens-file
		max_waiters MAX_WAITERS max-waiters
		max_total_waiters MAX_TOTAL_WAITERS max-total-waiters
		max_connections MAX_CONNECTIONS max-connections
		insecure INSECURE insecure
		log_level LOG_LEVEL log-level
		log_format LOG_FORMAT log-format
		tls.cert TLS_CERT tls-cert
		tls.key TLS_KEY tls-key
		tls.client_ca TLS_CLIENT_CA tls-client-ca
		admin.listen ADMIN_LISTEN admin-listen
		admin.credentials_file ADMIN_CREDENTIALS_FILE admin-credentials-file
		admin.allowed_hosts ADMIN_ALLOWED_HOSTS admin-allowed-hosts
		admin.cert ADMIN_CERT admin-cert
		admin.key ADMIN_KEY admin-key
		cluster.node_id CLUSTER_NODE_ID cluster-node-id
		cluster.data_dir CLUSTER_DATA_DIR cluster-data-dir
		cluster.listen CLUSTER_LISTEN cluster-listen
		cluster.members CLUSTER_MEMBERS cluster-members
		cluster.cert CLUSTER_CERT cluster-cert
		cluster.key CLUSTER_KEY cluster-key
		cluster.ca CLUSTER_CA cluster-ca
		cluster.heartbeat CLUSTER_HEARTBEAT cluster-heartbeat
		cluster.election CLUSTER_ELECTION cluster-election
		cluster.leader_lease CLUSTER_LEADER_LEASE cluster-leader-lease
		cluster.snapshot_interval CLUSTER_SNAPSHOT_INTERVAL cluster-snapshot-interval
		cluster.snapshot_threshold CLUSTER_SNAPSHOT_THRESHOLD cluster-snapshot-threshold
		trace.sample TRACE_SAMPLE trace-sample
		trace.slow TRACE_SLOW trace-slow
		trace.hash_keys TRACE_HASH_KEYS trace-hash-keys`)
	var got []string
	for _, k := range Keys() {
		got = append(got, k.Name, k.Env, k.Flag)
		if k.Help == "" || strings.HasSuffix(k.Help, ".") {
			t.Errorf("%s: help %q", k.Name, k.Help)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// One valid value of each key that is not its default, as text and in TOML.
var samples = map[string]struct{ text, toml string }{
	"listen":                 {"[::1]:1", `"[::1]:1"`},
	"advertise":              {"a:1", `"a:1"`},
	"client_tokens":          {"0123456789abcdef,fedcba9876543210", `["0123456789abcdef", "fedcba9876543210"]`},
	"client_tokens_file":     {"/t", `"/t"`},
	"max_waiters":            {"7", "7"},
	"max_total_waiters":      {"8", "8"},
	"max_connections":        {"9", "9"},
	"insecure":               {"true", "true"},
	"log_level":              {"warn", `"warn"`},
	"log_format":             {"json", `"json"`},
	"tls.cert":               {"/c", `"/c"`},
	"tls.key":                {"/k", `"/k"`},
	"tls.client_ca":          {"/a", `"/a"`},
	"admin.listen":           {"127.0.0.1:2", `"127.0.0.1:2"`},
	"admin.credentials_file": {"/r", `"/r"`},
	"admin.allowed_hosts":    {"a,b", `["a", "b"]`},
	"admin.cert":             {"/c", `"/c"`},
	"admin.key":              {"/k", `"/k"`},
	"cluster.node_id":        {"n", `"n"`},
	"cluster.data_dir":       {"/d", `"/d"`},
	"cluster.listen":         {"127.0.0.1:3", `"127.0.0.1:3"`},
	"cluster.members":        {"n=h:1=h:2,m=h:3=h:4=h:5", `[{id="n",raft="h:1",client="h:2"},{id="m",raft="h:3",client="h:4",admin="h:5"}]`},
	"cluster.cert":           {"/c", `"/c"`},
	"cluster.key":            {"/k", `"/k"`},
	"cluster.ca":             {"/a", `"/a"`},

	"cluster.heartbeat":          {"1.5s", `"1.5s"`},
	"cluster.election":           {"2s", `"2s"`},
	"cluster.leader_lease":       {"600ms", `"600ms"`},
	"cluster.snapshot_interval":  {"1m0s", `"1m"`},
	"cluster.snapshot_threshold": {"1000", "1000"},

	"trace.sample":    {"0.5", "0.5"},
	"trace.slow":      {"2s", `"2s"`},
	"trace.hash_keys": {"true", "true"},
}

// Every key can be set by each source, with the same effect, and notes name it.
func TestEveryKeyFromEverySource(t *testing.T) {
	for _, k := range Keys() {
		t.Run(k.Name, func(t *testing.T) {
			sample, ok := samples[k.Name]
			if !ok {
				t.Fatal("no sample")
			}
			file := writeFile(t, "c.toml", k.Name+" = "+sample.toml)
			for source, from := range map[string]Sources{
				file + ":1":            {File: file},
				"environment " + k.Env: {Env: env(k.Env, sample.text)},
				"flag --" + k.Flag:     {Flags: map[string]string{k.Flag: sample.text}},
			} {
				c, _, _ := Load(from) // some samples can't stand alone
				if k.Secret && from.Flags != nil {
					continue // TestTokensAreNoArguments
				}
				if k.Secret {
					if len(c.ClientTokens) != 2 || string(c.ClientTokens[1].Secret()) != "fedcba9876543210" {
						t.Errorf("%s: got %v", source, c.ClientTokens)
					}
				} else if got := k.in(&c).String(); got != sample.text {
					t.Errorf("%s: got %q", source, got)
				}
				if got := c.sources[k.Name].text; got != source {
					t.Errorf("source %q, want %q", got, source)
				}
			}
		})
	}
}

func TestFlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	file := writeFile(t, "c.toml", "max_waiters = 3\nmax_total_waiters = 3\nmax_connections = 30\nclient_tokens = ['token-of-the-file']")
	environment := env("MAX_WAITERS", "4", "MAX_TOTAL_WAITERS", "4", "CLIENT_TOKENS", "token-of-the-environment, ,")
	c, _, err := Load(Sources{File: file, Env: environment, Flags: map[string]string{"max-waiters": "5", "no-key": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxWaiters != 5 || c.MaxTotalWaiters != 4 || c.MaxConnections != 30 || c.LogFormat != LogText {
		t.Errorf("got %+v", c)
	}
	if len(c.ClientTokens) != 1 || string(c.ClientTokens[0].Secret()) != "token-of-the-environment" {
		t.Errorf("tokens of a lower source stay: %v", c.ClientTokens)
	}
}

func TestAnEmptyVariableCountsAsNotSet(t *testing.T) {
	file := writeFile(t, "c.toml", "log_level = 'warn'")
	c, _, err := Load(Sources{File: file, Env: env("LOG_LEVEL", "", "INSECURE", "", "CLUSTER_NODE_ID", "")})
	if err != nil || (*level)(&c.LogLevel).String() != "warn" {
		t.Error(c.LogLevel, err)
	}
}

func TestEachFaultNamesItsSource(t *testing.T) {
	file := writeFile(t, "c.toml", "\nmax_waiters = 'x'\nmax_total_waiters = 0")
	_, _, err := Load(Sources{
		File:  file,
		Env:   env("MAX_CONNECTIONS", "many", "TRACE_SAMPLE", "Inf", "INSECURE", "perhaps", "CLUSTER_MEMBERS", "a=b"),
		Flags: map[string]string{"log-level": "loud", "admin-listen": "5280"},
	})
	want := strings.ReplaceAll(`FILE:2: max_waiters: is text in quotes; write a whole number without quotes
FILE:3: max_total_waiters: 0 is out of range; set 1 to 65536
environment MAX_CONNECTIONS: max_connections: "many" is not a whole number
environment INSECURE: insecure: "perhaps" is neither true nor false
environment CLUSTER_MEMBERS: cluster.members: entry 1, "a=b", has 2 parts; write ID=RAFT=CLIENT or ID=RAFT=CLIENT=ADMIN, with commas between members
environment TRACE_SAMPLE: trace.sample: "Inf" is not a number
flag --log-level: log_level: "loud" is no log level; set debug, info, warn or error
flag --admin-listen: admin.listen: "5280" has no port; write HOST:PORT, as in 127.0.0.1:5225`, "FILE", file)
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestAFaultyValueIsNamedEvenWhereAnotherSourceWins(t *testing.T) {
	_, _, err := Load(Sources{Env: env("MAX_WAITERS", "many"), Flags: map[string]string{"max-waiters": "0"}})
	if faults, ok := err.(Faults); !ok || len(faults) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestTokensAreNoArguments(t *testing.T) {
	c, _, err := Load(Sources{Flags: map[string]string{"client-tokens": "hunter2hunter2hunter2"}})
	want := "flag --client-tokens: client_tokens: every user of this machine sees the arguments of a command; change these tokens, and set client_tokens_file or CLIENT_TOKENS"
	if err == nil || err.Error() != want || len(c.ClientTokens) != 0 {
		t.Errorf("got %v, %v", err, c.ClientTokens)
	}
}

func TestPathsInAFileAreRelativeToIt(t *testing.T) {
	file := writeFile(t, "c.toml", "client_tokens_file = 'sub/tokens'\ntls.cert = '/abs.pem'")
	c, _, _ := Load(Sources{File: file, Env: env("TLS_KEY", "key.pem")})
	if want := filepath.Join(filepath.Dir(file), "sub/tokens"); c.ClientTokensFile != want {
		t.Errorf("got %s, want %s", c.ClientTokensFile, want)
	}
	if c.TLS.Cert != "/abs.pem" || c.TLS.Key != "key.pem" {
		t.Errorf("got %+v", c.TLS)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "there is no file \"FILE\"; put it there or correct the path",
		dir:                        `"FILE" is not a regular file; name one`,
		pipe:                       `"FILE" is not a regular file; name one`,
		writeFile(t, "large", strings.Repeat("#\n", MaxFile/2+1)): `"FILE" is larger than 1048576 bytes; this is not the right file`,
		writeFile(t, "bom", "\ufefflisten = ':1'"):                "FILE:1: begins with a byte order mark; save it as UTF-8 without one",
	} {
		_, _, err := Load(Sources{File: file})
		if got := strings.ReplaceAll(err.Error(), file, "FILE"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSecretsThatOthersCanReadAreWarnedOf(t *testing.T) {
	scene(t)
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("c.toml", "\nclient_tokens = ['0123456789abcdef']\nclient_tokens_file='t'\ntls={cert='server.pem',key='server.key'}", 0o644)
	write("t", "fedcba9876543210", 0o602)
	if err := os.Chmod("server.key", 0o604); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := Load(Sources{File: "c.toml"})
	want := `c.toml:2: client_tokens: "c.toml" can be read by every user of this machine; run chmod o-rw on it
c.toml:3: client_tokens_file: "t" can be changed by every user of this machine; run chmod o-rw on it
c.toml:4: tls.key: "server.key" can be read by every user of this machine; run chmod o-rw on it`
	if err != nil || warnings.String() != want {
		t.Errorf("got %v\n%s", err, warnings)
	}
}

func TestOnlySomeKeysNeedARestart(t *testing.T) {
	running := Default()
	loaded := Default()
	for _, k := range Keys() {
		k.in(&loaded).setText(samples[k.Name].text)
	}
	loaded.TLS = TLS{}
	loaded.Cluster.Cert = ""
	got := NeedRestart(running, loaded)
	if slices.ContainsFunc(got, func(name string) bool {
		return strings.HasPrefix(name, "client_tokens") || strings.HasPrefix(name, "tls.") || name == "log_level" ||
			name == "cluster.cert" || name == "cluster.key" || name == "cluster.ca"
	}) {
		t.Errorf("taken over on SIGHUP, but named: %v", got)
	}
	if want := len(Keys()) - 9; len(got) != want {
		t.Errorf("%d keys, want %d: %v", len(got), want, got)
	}
	running.TLS = TLS{Cert: "a", Key: "a"}
	loaded = running
	loaded.TLS = TLS{Cert: "b", Key: "b", ClientCA: "b"}
	if got := NeedRestart(running, loaded); got != nil {
		t.Errorf("other certificates need %v", got)
	}
	loaded.TLS = TLS{}
	if got := NeedRestart(running, loaded); !slices.Equal(got, []string{"tls.cert"}) {
		t.Errorf("TLS turned off needs %v", got)
	}
	running.Cluster.Cert = "a"
	loaded = running
	loaded.Cluster.Cert, loaded.Cluster.CA = "b", "b"
	if got := NeedRestart(running, loaded); got != nil {
		t.Errorf("other certificates of a node need %v", got)
	}
	loaded.Cluster.Cert = ""
	if got := NeedRestart(running, loaded); !slices.Equal(got, []string{"cluster.cert"}) {
		t.Errorf("TLS between nodes turned off needs %v", got)
	}
	if got := NeedRestart(running, running); got != nil {
		t.Errorf("nothing changed, but %v", got)
	}
}

func TestManyFaultsAreCut(t *testing.T) {
	_, _, err := Load(Sources{File: writeFile(t, "c.toml", lineEach(250, "k%d = 1\n"))})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxNotes+1 || lines[maxNotes] != "and 150 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
