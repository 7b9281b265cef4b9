package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/ticketing-io/ticketing/client"
	"github.com/ticketing-io/ticketing/core/wire"
)

const defaultWait = 5 * time.Second

// defaultAddr is where a server listens that was started without configuration.
var defaultAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(wire.DefaultPort))

// tokenEnv is the variable with the client token itself.
const tokenEnv = "TICKETING_TOKEN"

// clientEnv is what the client commands read of the environment.
var clientEnv = []envVar{
	{"TICKETING_ADDR", "the servers as host:port, comma-separated"},
	{"TICKETING_TOKEN_FILE", "a file with the client token"},
	{tokenEnv, "the client token itself, if no file is named"},
}

// clientFlags are the flags of every command that talks to a server.
type clientFlags struct {
	addrs      []string
	token      string
	tokenFile  string
	tls        bool
	ca         string
	cert, key  string
	skipVerify bool
}

func (f *clientFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Var(texts{&f.addrs, "HOST:PORT"}, "addr", "a server; repeat it for the nodes of a cluster (default "+defaultAddr+", or TICKETING_ADDR)")
	textVar(fs, &f.tokenFile, "token-file", "FILE", "file with the client token (or TICKETING_TOKEN_FILE, TICKETING_TOKEN)")
	textVar(fs, &f.token, "token", "TOKEN", "the client token itself; every user of this machine can see it")
	fs.BoolVar(&f.tls, "tls", false, "use TLS, with the system's authorities")
	textVar(fs, &f.ca, "ca", "FILE", "use TLS, with the authorities of this PEM file")
	textVar(fs, &f.cert, "cert", "FILE", "client certificate in PEM, for servers that ask for one")
	textVar(fs, &f.key, "key", "FILE", "key of the client certificate in PEM")
	fs.BoolVar(&f.skipVerify, "insecure-skip-verify", false, "use TLS without checking the server's certificate; for tests only")
	notBoth(cmd, "token", "token-file")
	notBoth(cmd, "ca", "insecure-skip-verify")
}

// connect makes a broker from the flags and the environment, and warns of a token
// that others can see.
func (f *clientFlags) connect(p *program, change ...func(*client.Config)) (*client.Broker, error) {
	if f.token != "" {
		fmt.Fprintln(p.stderr, "warning: --token: every user of this machine can see arguments; use --token-file or TICKETING_TOKEN")
	}
	cfg, err := f.config(p)
	if err != nil {
		return nil, err
	}
	for _, c := range change {
		c(&cfg)
	}
	return client.New(cfg)
}

func (f *clientFlags) config(p *program) (client.Config, error) {
	cfg := client.Config{Addrs: f.addrs}
	if len(cfg.Addrs) == 0 {
		cfg.Addrs = splitList(p.getenv("TICKETING_ADDR"))
	}
	if len(cfg.Addrs) == 0 {
		cfg.Addrs = []string{defaultAddr}
	}
	switch {
	case f.tokenFile != "":
		cfg.TokenFile = f.tokenFile
	case f.token != "":
		cfg.Token = f.token
	case p.getenv("TICKETING_TOKEN_FILE") != "":
		cfg.TokenFile = p.getenv("TICKETING_TOKEN_FILE")
	default:
		cfg.Token = p.getenv(tokenEnv)
	}
	switch {
	case f.skipVerify:
		cfg.TLS.Mode = client.TLSInsecureSkipVerify
	case f.ca != "":
		cfg.TLS.Mode, cfg.TLS.CAFile = client.TLSCA, f.ca
	case f.tls:
		cfg.TLS.Mode = client.TLSSystem
	}
	if f.cert != "" || f.key != "" {
		if f.cert == "" || f.key == "" {
			return cfg, fmt.Errorf("%w: --cert and --key go together", client.ErrConfig)
		}
		if cfg.TLS.Mode == client.TLSOff {
			return cfg, fmt.Errorf("%w: --cert without --tls or --ca", client.ErrConfig)
		}
		cfg.TLS.CertFile, cfg.TLS.KeyFile = f.cert, f.key
	}
	return cfg, nil
}

// splitList splits a comma-separated list and drops what is empty.
func splitList(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// lockFlags are the times of an acquire.
type lockFlags struct {
	wait, lease time.Duration
}

func (f *lockFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.DurationVar(&f.wait, "wait", defaultWait, "longest wait for the lock, 0s to 255s; 0s is one attempt")
	fs.DurationVar(&f.lease, "lease", client.DefaultLease, "how long the lock is held at most, 1s to 250s")
}

// wholeSeconds rounds up as the library does: the wire has no smaller unit.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// parseToken reads a fencing token as acquire prints it.
func parseToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || token == 0 {
		return 0, errors.New("TOKEN is the number that acquire printed, not " + strconv.Quote(s))
	}
	return token, nil
}
