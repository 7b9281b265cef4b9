package logs

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/node"
	"github.com/ticketing-io/ticketing/core/wire"
)

// dial connects, has f talk, and reads on until the server closes.
func dial(t *testing.T, addr string, f func(c net.Conn, nonce wire.Nonce)) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(c)
	line, err := r.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	nonce, err := wire.ParseChallenge(line[:len(line)-1])
	if err != nil {
		t.Fatal(err)
	}
	f(c, nonce)
	c.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, r)
}

func TestNoClientTokenIsEverInTheLog(t *testing.T) {
	const (
		token, rotated = "first-s3cret-of-the-shop", "second-s3cret-of-the-shop"
		short, guess   = "sh0rt-token", "gu3ssed-by-somebody"
	)
	for _, format := range []string{config.LogText, config.LogJSON} {
		t.Run(format, func(t *testing.T) {
			var out buffer
			var level slog.LevelVar
			level.Set(slog.LevelDebug)
			log := New(&out, format, &level)
			file := filepath.Join(t.TempDir(), "tokens")
			load := func(tokens string) (config.Config, error) {
				if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
					t.Fatal(err)
				}
				cfg, warnings, err := config.Load(config.Sources{Flags: map[string]string{
					"listen": "127.0.0.1:0", "client-tokens-file": file, "log-level": "debug",
				}})
				for _, w := range warnings {
					log.Warn(w.Text, "at", w.Source, "key", w.Key)
				}
				return cfg, err
			}
			cfg, err := load("shop " + token + "\n" + short + "\n")
			if err != nil {
				t.Fatal(err)
			}
			n, err := node.Start(t.Context(), cfg, node.Options{Logger: log, Level: &level})
			if err != nil {
				t.Fatal(err)
			}
			addr := n.Addr().String()

			var digests []string
			with := func(secret, then string) func(net.Conn, wire.Nonce) {
				return func(c net.Conn, nonce wire.Nonce) {
					digest := wire.Digest([]byte(secret), nonce)
					digests = append(digests, string(digest[:]), string(nonce[:]))
					io.WriteString(c, string(digest[:])+"\n"+then)
				}
			}
			says := func(bytes string) func(net.Conn, wire.Nonce) {
				return func(c net.Conn, _ wire.Nonce) { io.WriteString(c, bytes) }
			}
			dial(t, addr, with(token, "Zno such operation "+token)) // in, and out again
			dial(t, addr, with(guess, ""))                          // refused
			dial(t, addr, says(token+"\n"))                         // in clear: refused
			dial(t, addr, says(token))                              // broken off
			dial(t, addr, says(strings.Repeat(token, 20)+"\n"))     // too long
			dial(t, addr, says("GET /"+token+" HTTP/1.1\r\n\r\n"))  // another protocol: refused
			if cfg, err = load("shop " + rotated + "\n"); err != nil {
				t.Fatal(err)
			}
			if err := n.Reload(cfg); err != nil {
				t.Fatal(err)
			}
			dial(t, addr, with(token, "")) // no longer valid
			_, err = load("shop " + rotated + " " + token + "\n")
			if err == nil {
				t.Fatal("a faulty file of tokens was taken")
			}
			log.Error("the configuration stays as it was", "error", err, "config", cfg, "tokens", cfg.ClientTokens)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := n.Close(ctx); err != nil {
				t.Error(err)
			}

			for _, secret := range append(digests, token, rotated, short, guess) {
				for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret))} {
					if strings.Contains(out.String(), form) {
						t.Errorf("%q is in the log", form)
					}
				}
			}
			for text, want := range map[string]int{
				"refused a client: its token is none of the client tokens": 4,
				"a connection broke off in its handshake":                  2,
				"connection closed": 7,
			} {
				if got := out.count(text, "127.0.0.1:"); got != want {
					t.Errorf("%q is in the log %d times, want %d", text, got, want)
				}
			}
			if out.count("shop", "bad_op") != 1 {
				t.Error("the log does not name the token of the client that broke the protocol")
			}
			if t.Failed() {
				t.Logf("the log:\n%s", &out)
			}
		})
	}
}
