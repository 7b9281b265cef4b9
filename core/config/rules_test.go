package config

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		in         string
		ok         bool
		loopback   bool
		everywhere bool
	}{
		{in: "127.0.0.1:5225", ok: true, loopback: true},
		{in: "127.8.9.1:0", ok: true, loopback: true},
		{in: "[::1]:5225", ok: true, loopback: true},
		{in: "[::ffff:127.0.0.1]:5225", ok: true, loopback: true},
		{in: "localhost:5225", ok: true, loopback: true},
		{in: "LocalHost:65535", ok: true, loopback: true},
		{in: ":5225", ok: true, everywhere: true},
		{in: "0.0.0.0:5225", ok: true, everywhere: true},
		{in: "[::]:5225", ok: true, everywhere: true},
		{in: "[::ffff:0.0.0.0]:5225", ok: true, everywhere: true},
		{in: "10.0.0.1:5225", ok: true},
		{in: "[fe80::1%eth0]:5225", ok: true},
		{in: "locks.example.com:5225", ok: true},
		{in: "locks.example.com.:5225", ok: true},
		{in: "node_1:5225", ok: true},
		{in: "1.example:5225", ok: true},
		{in: "localhost.example.com:5225", ok: true},
		{in: ""},
		{in: ":"},
		{in: "5225"},
		{in: "127.0.0.1"},
		{in: "127.0.0.1:"},
		{in: "127.0.0.1:65536"},
		{in: "127.0.0.1:-1"},
		{in: "127.0.0.1:+1"},
		{in: "127.0.0.1:http"},
		{in: "127.0.0.1:0x10"},
		{in: "::1:5225"},
		{in: "[::1]"},
		{in: "[::1:5225"},
		{in: "[127.0.0.1]:5225"},
		{in: "[localhost]:5225"},
		{in: "[]:5225"},
		{in: "10.0.0.256:5225"},
		{in: "10.0.1:5225"},
		{in: "1:1"},
		{in: "http://a:1"},
		{in: "a b:1"},
		{in: "a\n:1"},
		{in: "-a:1"},
		{in: "a..b:1"},
		{in: ".:1"},
		{in: "*:1"},
		{in: "ä.example:1"},
		{in: strings.Repeat("a", 64) + ":1"},
		{in: strings.Repeat("a.", 127) + "a:1"},
	} {
		a, problem := parseAddress(test.in)
		if (problem == "") != test.ok || strings.Contains(problem, "\n") {
			t.Errorf("%q: %q", test.in, problem)
			continue
		}
		if test.ok && (a.loopback() != test.loopback || a.everywhere() != test.everywhere) {
			t.Errorf("%q: loopback %v, everywhere %v", test.in, a.loopback(), a.everywhere())
		}
		if !test.ok && !strings.Contains(problem, "; write ") {
			t.Errorf("%q: does not say what to do: %s", test.in, problem)
		}
	}
}

func TestAddressesForOthers(t *testing.T) {
	for in, ok := range map[string]bool{
		"a.example:5225":       true,
		"10.0.0.1:5225":        true,
		"127.0.0.1:5225":       true, // three nodes on one machine
		":5225":                false,
		"0.0.0.0:5225":         false,
		"[::]:5225":            false,
		"a.example:0":          false,
		"a.example":            false,
		longHost(191-2) + ":1": true,
		longHost(192-2) + ":1": false,
	} {
		if _, problem := parseReachable(in); (problem == "") != ok {
			t.Errorf("%q: %q", in, problem)
		}
	}
}

// longHost makes a host name of n bytes.
func longHost(n int) string {
	return strings.Repeat(strings.Repeat("a", 49)+".", n/50) + strings.Repeat("a", n%50)
}

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:1", "127.0.0.1:1", true},
		{"127.0.0.1:1", ":1", true},
		{"[::]:1", "10.0.0.1:1", true},
		{"127.0.0.1:1", "127.0.0.1:2", false},
		{"127.0.0.1:1", "127.0.0.2:1", false},
		{":0", ":0", false},
	} {
		a, _ := parseAddress(test.a)
		b, _ := parseAddress(test.b)
		if a.overlaps(b) != test.want || b.overlaps(a) != test.want {
			t.Errorf("%s and %s: want %v", test.a, test.b, test.want)
		}
	}
}

// Without client tokens the server listens on loopback only, unless told insecure.
func TestSafeByDefault(t *testing.T) {
	token := NewToken("", []byte("0123456789abcdef"))
	for _, test := range []struct {
		listen   string
		tokens   []Token
		insecure bool
		ok       bool
	}{
		{"127.0.0.1:1", nil, false, true},
		{"localhost:1", nil, false, true},
		{":1", nil, false, false},
		{"10.0.0.1:1", nil, false, false},
		{"a.example:1", nil, false, false},
		{":1", nil, true, true},
		{":1", []Token{token}, false, true},
	} {
		c := Default()
		c.Listen, c.ClientTokens, c.Insecure = test.listen, test.tokens, test.insecure
		if err := c.Validate(); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// Faults of a Config made in code have no source.
func TestValidateReportsEveryFault(t *testing.T) {
	c := Config{Listen: ":1", ClientTokensFile: "never read", Advertise: "0.0.0.0:1", Cluster: Cluster{NodeID: "a"}}
	var faults Faults
	if !errors.As(c.Validate(), &faults) {
		t.Fatal("not Faults")
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.Key)
		if f.Source != "" {
			t.Errorf("%s has a source", f)
		}
	}
	want := "admin.listen cluster.listen advertise client_tokens_file max_waiters max_total_waiters max_connections log_format cluster.data_dir cluster.heartbeat cluster.election cluster.leader_lease cluster.snapshot_interval cluster.snapshot_threshold trace.slow"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}

func TestBounds(t *testing.T) {
	tokens := make([]Token, MaxTokens+1)
	for i := range tokens {
		tokens[i] = NewToken("", fmt.Appendf(nil, "0123456789abcdef%d", i))
	}
	members := make([]Member, MaxMembers+1)
	for i := range members {
		members[i] = Member{ID: fmt.Sprint("n", i), Raft: fmt.Sprint("h:", 2*i+1), Client: fmt.Sprint("h:", 2*i+2)}
	}
	for name, test := range map[string]struct {
		with func(c *Config, extra int)
		keys int // faults without the one too many
	}{
		"tokens": {func(c *Config, extra int) { c.ClientTokens = tokens[:MaxTokens+extra] }, 0},
		"a token": {func(c *Config, extra int) {
			c.ClientTokens = []Token{NewToken("", bytes.Repeat([]byte{'x'}, MaxTokenLen+extra))}
		}, 0},
		"members": {func(c *Config, extra int) {
			c.Cluster.NodeID, c.Cluster.DataDir, c.Cluster.Members = "n0", "d", members[:MaxMembers+extra]
		}, 0},
		"hosts": {func(c *Config, extra int) {
			c.Admin.AllowedHosts = strings.Split(strings.Repeat("a ", MaxAllowedHosts-1+extra)+"a", " ")
		}, 0},
	} {
		for extra := range 2 {
			c := Default()
			test.with(&c, extra)
			var faults Faults
			errors.As(c.Validate(), &faults)
			if len(faults) != test.keys+extra {
				t.Errorf("%s, %d too many: %v", name, extra, faults)
			}
		}
	}
}

// The listener's TLS does a handshake, at least 1.2, and asks for a certificate
// where there is a CA for it.
func TestListenerTLS(t *testing.T) {
	scene(t)
	c := Default()
	if conf, err := c.ListenerTLS(); conf != nil || err != nil {
		t.Error("TLS without files", conf, err)
	}
	c.TLS = TLS{Cert: "server.pem", Key: "server.key", ClientCA: "ca.pem"}
	server, err := c.ListenerTLS()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := tls.LoadX509KeyPair("ca.pem", "ca.key")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		client *tls.Config
		ok     bool
	}{
		{"with a certificate", &tls.Config{Certificates: []tls.Certificate{mine}}, true},
		{"without a certificate", &tls.Config{}, false},
		{"too old", &tls.Config{Certificates: []tls.Certificate{mine}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
	} {
		near, far := net.Pipe()
		test.client.InsecureSkipVerify = true
		done := make(chan error, 1)
		go func() {
			conn := tls.Server(far, server)
			done <- conn.Handshake()
			far.Close()
		}()
		conn := tls.Client(near, test.client)
		clientErr := conn.Handshake()
		near.Close()
		if serverErr := <-done; (serverErr == nil) != test.ok {
			t.Errorf("%s: server %v, client %v", test.name, serverErr, clientErr)
		}
	}
	c.TLS.Key = "other.key"
	var faults Faults
	if _, err := c.ListenerTLS(); !errors.As(err, &faults) || faults[0].Key != "tls.cert" {
		t.Error("a key of another certificate is taken", err)
	}
}

// A member that is added later is held to the same rules as those of the list.
func TestMembersAreValidated(t *testing.T) {
	good := Member{ID: "d", Raft: "d.example:5226", Client: "d.example:5225"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	err := Member{ID: "d d", Raft: ":5226", Client: "d.example", Admin: "d.example:0"}.Validate()
	if err == nil || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("got %v", err)
	}
}
