package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/config"
)

// A wrong command line is refused before anything is done, and the user is told
// what to do.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		args string
	}{
		{"unknown-command", "aquire"},
		{"unknown-flag", "acquire k --lese 3s"},
		{"acquire-without-key", "acquire"},
		{"acquire-bad-duration", "acquire k --wait 5"},
		{"acquire-two-tokens", "acquire k --token a --token-file b"},
		{"acquire-ca-and-no-check", "acquire k --ca f --insecure-skip-verify"},
		{"acquire-cert-without-key", "acquire k --tls --cert f"},
		{"acquire-cert-without-tls", "acquire k --cert f --key f"},
		{"release-without-token", "release k"},
		{"release-bad-token", "release k seven"},
		{"release-token-zero", "release k 0"},
		{"run-without-command", "run k"},
		{"run-without-dashes", "run k sleep 1"},
		{"run-two-keys", "run k l -- true"},
		{"run-try-and-wait", "run k --try --wait 3s -- true"},
		{"run-kill-after-too-long", "run k --lease 3s --kill-after 3s -- true"},
		{"run-kill-after-negative", "run k --kill-after -1s -- true"},
		{"run-no-such-command", "run k -- no-such-command-anywhere"},
		{"bench-faults", "bench --workers 0 --keys -1 --connections 9999 --duration 0s"},
		{"bench-too-many-loops", "bench --workers 65536 --pipeline 2"},
		{"bench-count-and-duration", "bench --count 5 --duration 3s"},
		{"version-with-argument", "version now"},
		{"members-without-command", "members"},
		{"members-unknown-command", "members lst"},
		{"members-list-without-node", "members list"},
		{"members-list-two-ways", "members list --config f --node a:1"},
		{"members-list-cert-alone", "members list --node a:1 --cert f"},
		{"members-list-no-port", "members list --node a"},
		{"members-list-with-argument", "members list a"},
		{"members-add-without-id", "members add --raft d:1"},
		{"members-add-one-address", "members add d --raft d:1"},
		{"members-add-faults", "members add d/d --raft :5226 --client d"},
		{"members-remove-two", "members remove a b"},
		{"members-transfer-leader-two", "members transfer-leader a b"},
		{"snapshot-save-without-file", "snapshot save"},
		{"snapshot-restore-wrong-words", "snapshot restore f --without-quiet-period=yes --node a:1"},
		{"snapshot-restore-no-file", "snapshot restore no-such-file --node a:1"},
		{"recover-without-peers", "recover --config f"},
		{"recover-without-config", "recover --peers f"},
		{"recover-wrong-words", "recover --peers f --without-quiet-period=true"},
		{"serve-with-argument", "serve now"},
		{"serve-token-as-argument", "serve --client-tokens secret-of-mine"},
		{"serve-faults", "serve --max-waiters many --log-format xml --listen nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ticketing(t, nil, strings.Fields(c.args)...)
			if strings.Contains(r.String(), "secret-of-mine") {
				t.Error("a secret is printed")
			}
			golden(t, "usage/"+c.name, r.String())
		})
	}
}

func TestCheckConfig(t *testing.T) {
	const good = "listen = \"127.0.0.1:5225\"\nlog_level = \"debug\"\n"
	const bad = "listn = \"x\"\nmax_waiters = \"a\"\nclient_tokens = [\"a secret with spaces\"]\n\n[tls]\ncert = \"nofile\"\n"
	const warns = "client_tokens = [\"short\"]\n[trace]\nsample = 0.5\n"
	const node = "advertise = \"a.example:5225\"\n[cluster]\nnode_id = \"a\"\ndata_dir = \"/var/lib/ticketing\"\n"
	const member = node + "members = [{id=\"a\",raft=\"a.example:5226\",client=\"a.example:5225\"},{id=\"b\",raft=\"b.example:5226\",client=\"b.example:5225\"}]\n"
	for _, c := range []struct{ name, content string }{{"good", good}, {"bad", bad}, {"warns", warns}, {"cluster", member}, {"joining", node}} {
		for _, form := range []string{"text", "json"} {
			t.Run(c.name+"-"+form, func(t *testing.T) {
				file := writeFile(t, "ticketing.toml", c.content)
				args := []string{"check-config", file}
				if form == "json" {
					args = append(args, "--json")
				}
				got := strings.ReplaceAll(ticketing(t, nil, args...).String(), file, "ticketing.toml")
				if strings.Contains(got, "secret with") || strings.Contains(got, "short\"") {
					t.Error("a secret is printed")
				}
				golden(t, "check-config/"+c.name+"-"+form, got)
			})
		}
	}
}

func TestCheckConfigTakesTheEnvironmentOnlyWhenAsked(t *testing.T) {
	file := writeFile(t, "ticketing.toml", "log_level = \"info\"\n")
	env := []string{"LOG_LEVEL=loud"}
	if r := ticketing(t, env, "check-config", file); r.code != exitOK {
		t.Errorf("without --env: %v", r)
	}
	if r := ticketing(t, env, "check-config", file, "--env"); r.code != exitError || !strings.Contains(r.stderr, "LOG_LEVEL") {
		t.Errorf("with --env: %v", r)
	}
}

// Every key of the configuration can be given as a flag; client tokens only to be
// refused.
func TestEverySettingIsAFlagOfServe(t *testing.T) {
	flags := commands()["serve"].Flags()
	for _, k := range config.Keys() {
		f := flags.Lookup(k.Flag)
		switch {
		case f == nil:
			t.Errorf("no flag --%s", k.Flag)
		case f.Hidden != k.Secret || !k.Switch() && f.DefValue != k.Default:
			t.Errorf("--%s: hidden %v, default %q", k.Flag, f.Hidden, f.DefValue)
		case k.Switch() != (f.NoOptDefVal != ""):
			t.Errorf("--%s takes a value: %v", k.Flag, f.NoOptDefVal == "")
		}
	}
}

func TestFlagsOfServeAreTakenAsGiven(t *testing.T) {
	cmd := newServe(newTestProgram())
	if err := cmd.ParseFlags([]string{"--insecure", "--listen", ":1", "--tls-cert=c", "--config", "f"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"insecure": "true", "listen": ":1", "tls-cert": "c", "config": "f"}
	if got := givenFlags(cmd.Flags()); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
