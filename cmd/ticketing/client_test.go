package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/client"
)

// clientConfig reads a command line and an environment into a configuration.
func clientConfig(t *testing.T, env []string, args ...string) client.Config {
	t.Helper()
	var flags clientFlags
	cmd := &cobra.Command{Use: "test", Run: func(*cobra.Command, []string) {}}
	flags.add(cmd)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	cfg, err := flags.config(newTestProgram(env...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestClientConfig(t *testing.T) {
	token, tokenFile := "TICKETING_TOKEN=from-env", "TICKETING_TOKEN_FILE=/env/token"
	local := []string{"127.0.0.1:5225"}
	for _, c := range []struct {
		name string
		env  []string
		args string
		want client.Config
	}{
		{"nothing given", nil, "", client.Config{Addrs: local}},
		{"addresses of the environment", []string{"TICKETING_ADDR=a:1, b:2,"}, "", client.Config{Addrs: []string{"a:1", "b:2"}}},
		{"flag over environment", []string{"TICKETING_ADDR=a:1"}, "--addr c:3 --addr d:4", client.Config{Addrs: []string{"c:3", "d:4"}}},
		{"the last of a variable", []string{"TICKETING_ADDR=a:1", "TICKETING_ADDR=b:2"}, "", client.Config{Addrs: []string{"b:2"}}},
		{"token of the environment", []string{token}, "", client.Config{Addrs: local, Token: "from-env"}},
		{"token file over token", []string{token, tokenFile}, "", client.Config{Addrs: local, TokenFile: "/env/token"}},
		{"token flag over environment", []string{token, tokenFile}, "--token mine", client.Config{Addrs: local, Token: "mine"}},
		{"token file flag over environment", []string{token, tokenFile}, "--token-file f", client.Config{Addrs: local, TokenFile: "f"}},
		{"tls", nil, "--tls", client.Config{Addrs: local, TLS: client.TLS{Mode: client.TLSSystem}}},
		{"ca means tls", nil, "--ca f", client.Config{Addrs: local, TLS: client.TLS{Mode: client.TLSCA, CAFile: "f"}}},
		{"no check", nil, "--insecure-skip-verify", client.Config{Addrs: local, TLS: client.TLS{Mode: client.TLSInsecureSkipVerify}}},
		{"client certificate", nil, "--ca f --cert c --key k", client.Config{Addrs: local, TLS: client.TLS{Mode: client.TLSCA, CAFile: "f", CertFile: "c", KeyFile: "k"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := clientConfig(t, c.env, strings.Fields(c.args)...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A token in the arguments is seen by everybody; so the user is told, and the token
// itself is not repeated.
func TestTokenAsArgumentIsWarnedOf(t *testing.T) {
	r := ticketing(t, nil, "acquire", "bad key", "--token", "geheim")
	if !strings.Contains(r.stderr, "warning: --token") || strings.Contains(r.String(), "geheim") {
		t.Errorf("%v", r)
	}
	if r := ticketing(t, []string{"TICKETING_TOKEN=geheim"}, "acquire", "bad key"); strings.Contains(r.stderr, "warning") {
		t.Errorf("%v", r)
	}
}

func TestWholeSeconds(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Second, time.Second: time.Second, time.Second + 1: 2 * time.Second,
	} {
		if got := wholeSeconds(in); got != want {
			t.Errorf("wholeSeconds(%s) = %s, want %s", in, got, want)
		}
	}
}
