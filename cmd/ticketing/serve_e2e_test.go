package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

func TestAcquireLeavesTheLockHeldAndReleaseGivesItBack(t *testing.T) {
	s := startServer(t)
	token := takeToken(t, s.env(), "order-42")
	if r := ticketing(t, s.env(), "acquire", "order-42", "--wait", "0s"); r.code != exitTimeout || r.stdout != "" {
		t.Errorf("acquire of a held key: %v", r)
	}
	if r := ticketing(t, s.env(), "release", "order-42", token); r.code != exitOK || r.stdout != "released \"order-42\"\n" {
		t.Errorf("release: %v", r)
	}
	if r := ticketing(t, s.env(), "release", "order-42", token); r.code != exitNotCurrent {
		t.Errorf("second release: %v", r)
	}
	again := takeToken(t, s.env(), "order-42")
	if number(t, again) <= number(t, token) {
		t.Errorf("token %s after %s", again, token)
	}
}

func TestJSONOfAcquireAndRelease(t *testing.T) {
	s := startServer(t)
	r := ticketing(t, s.env(), "acquire", "order-42", "--lease", "29500ms", "--json")
	var grant struct {
		Key, Token, Owner, Domain string
		Lease, Remaining          float64
	}
	if err := json.Unmarshal([]byte(r.stdout), &grant); err != nil || r.code != exitOK {
		t.Fatalf("%v: %v", err, r)
	}
	if grant.Key != "order-42" || number(t, grant.Token) == 0 || number(t, grant.Owner) == 0 || grant.Domain != "single process" ||
		grant.Lease != 30 || grant.Remaining <= 0 || grant.Remaining > 30 {
		t.Errorf("%+v", grant)
	}
	r = ticketing(t, s.env(), "release", "order-42", grant.Token, "--json")
	if want := `{"key":"order-42","token":"` + grant.Token + `","released":true}` + "\n"; r.code != exitOK || r.stdout != want {
		t.Errorf("got %v, want %s", r, want)
	}
}

// A token that nobody can read must not keep the lock.
func TestAcquireGivesTheLockBackWhenTheTokenCantBeWritten(t *testing.T) {
	s := startServer(t)
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"acquire", "k"}, nil, brokenWriter{}, &stderr, s.env())
	if code != exitError || !strings.Contains(stderr.String(), "given back") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	takeToken(t, s.env(), "k", "--wait", "0s")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"TICKETING_ADDR=" + l.Addr().String()}
	l.Close()
	if r := ticketing(t, env, "acquire", "k", "--wait", "1s"); r.code != exitError {
		t.Errorf("acquire: %v", r)
	}
	if r := ticketing(t, env, "run", "k", "--wait", "1s", "--", "true"); r.code != runError {
		t.Errorf("run: %v", r)
	}
}

// A single server that is killed and started again grants tokens above its old
// ones.
func TestTokensRiseOverARestart(t *testing.T) {
	s := startServer(t)
	before := takeToken(t, s.env(), "k")
	s.signal(syscall.SIGKILL)
	s.wait()
	s = startServer(t)
	if after := takeToken(t, s.env(), "k"); number(t, after) <= number(t, before) {
		t.Errorf("token %s after %s", after, before)
	}
}

func TestServerSaysWhatARestartMeans(t *testing.T) {
	s := startServer(t)
	s.log.await("restart forgets")
}

func TestPortInUse(t *testing.T) {
	s := startServer(t)
	r := ticketing(t, nil, "serve", "--listen", s.addr)
	if r.code != exitError || !strings.Contains(r.stderr, s.addr) || !strings.Contains(r.stderr, "already listens") {
		t.Errorf("%v", r)
	}
}

func TestTermAndIntDrain(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := startServer(t)
			takeToken(t, s.env(), "k")
			waiter := openSession(t, s.addr)
			waiter.send(wire.Request{Op: wire.OpAcquire, Wait: 100, Lease: 30, Owner: 7, Key: "k"})
			waiter.send(wire.Request{Op: wire.OpRelease, Key: "k"})
			if r := waiter.reply(); r.Op != wire.OpNotCurrent {
				t.Fatalf("the probe behind the acquire was answered %c", r.Op)
			}
			s.signal(sig)
			if r := waiter.reply(); r.Op != wire.OpBusy || r.Owner != 7 {
				t.Errorf("the waiter was answered %c", r.Op)
			}
			if code := s.wait(); code != exitOK {
				t.Errorf("the server ended with exit code %d", code)
			}
			s.log.await(`"msg":"stopped"`)
		})
	}
}

// A client that reads no answers holds the drain up; a second signal does not wait.
func TestASecondSignalEndsTheServerAtOnce(t *testing.T) {
	s := startServer(t)
	deafen(t, s.addr)
	s.signal(syscall.SIGTERM)
	s.log.await(`"msg":"stopping"`)
	s.signal(syscall.SIGINT)
	if code := s.wait(); code != exitError {
		t.Errorf("exit code %d\n%s", code, s.log)
	}
	s.log.await("a second signal ended the server")
}

// timeout(1) sends its signal to its child and to the child's group: that is one stop.
// Half a second later it is another.
func TestTheSameSignalTwiceAtOnceIsOne(t *testing.T) {
	s := startServer(t)
	deafen(t, s.addr)
	s.signal(syscall.SIGTERM)
	s.log.await(`"msg":"stopping"`)
	s.signal(syscall.SIGTERM)
	time.Sleep(2 * sameSignal)
	if strings.Contains(s.log.String(), "second signal") {
		t.Error("the drain was cut short")
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != exitError {
		t.Errorf("exit code %d\n%s", code, s.log)
	}
}

// deafen asks much and reads nothing, until the connection is full both ways.
func deafen(t *testing.T, addr string) {
	t.Helper()
	conn := openSession(t, addr).conn
	probe := wire.Request{Op: wire.OpRelease, Key: strings.Repeat("k", wire.MaxKey)}.Append(nil)
	batch := bytes.Repeat(probe, 1000)
	for err := error(nil); err == nil; {
		conn.SetWriteDeadline(time.Now().Add(time.Second)) // for each: the machine may be slow to fill it
		_, err = conn.Write(batch)
	}
}

// session is a session on the wire, for what no client command does.
type session struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	dec  wire.ReplyDecoder
}

// openSession opens a session with the empty client token.
func openSession(t *testing.T, addr string) *session {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(patience))
	s := &session{t: t, conn: conn, in: bufio.NewReader(conn)}
	challenge, err := s.in.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	nonce, err := wire.ParseChallenge(bytes.TrimSuffix(challenge, []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	digest := wire.Digest(nil, nonce)
	if _, err := conn.Write(append(digest[:], '\n')); err != nil {
		t.Fatal(err)
	}
	if r := s.reply(); r.Op != wire.OpEmpty {
		t.Fatalf("the ready frame is %c", r.Op)
	}
	return s
}

func (s *session) send(r wire.Request) {
	s.t.Helper()
	if _, err := s.conn.Write(r.Append(nil)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) reply() wire.Reply {
	s.t.Helper()
	for {
		if r, ok := s.dec.Next(); ok {
			return r
		}
		b, err := s.in.ReadByte()
		if err != nil {
			s.t.Fatal(err)
		}
		s.dec.Feed([]byte{b})
	}
}

func TestHangupTakesNewTokensOver(t *testing.T) {
	const first, second = "the-first-token-of-all", "the-second-token-of-all"
	file := writeFile(t, "tokens", first+"\n")
	s := startServer(t, "--client-tokens-file", file)
	with := func(token string) int {
		return ticketing(t, s.env("TICKETING_TOKEN="+token), "acquire", "k-"+token, "--wait", "2s").code
	}
	if code := with(first); code != exitOK {
		t.Fatalf("the first token: exit code %d", code)
	}
	if code := with(second); code != exitError {
		t.Errorf("a token that is not known: exit code %d", code)
	}
	rewrite := func(content, awaited string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s.signal(syscall.SIGHUP)
		s.log.await(awaited)
	}
	rewrite(second+"\n", "configuration reloaded")
	if code := with(second); code != exitOK {
		t.Errorf("the new token: exit code %d", code)
	}
	rewrite("a line that is no token at all\n", "the configuration stays as it was")
	if code := with(second); code != exitTimeout { // it holds the key, so it is known
		t.Errorf("the token after a faulty file: exit code %d", code)
	}
	if strings.Contains(s.log.String(), first) || strings.Contains(s.log.String(), second) {
		t.Error("a token is in the log")
	}
}

func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	s := startServer(t, "--tls-cert", cert, "--tls-key", key)
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"its authority", []string{"--ca", cert}, exitOK},
		{"no check", []string{"--insecure-skip-verify"}, exitOK},
		{"the system's authorities do not know it", []string{"--tls"}, exitError},
		{"plain TCP to a TLS server", nil, exitError},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"acquire", strings.ReplaceAll(c.name, " ", "-"), "--wait", "1s"}, c.args...)
			if r := ticketing(t, s.env(), args...); r.code != c.want {
				t.Errorf("exit code %d, want %d: %v", r.code, c.want, r)
			}
		})
	}
}

// selfSigned makes a certificate for 127.0.0.1 and returns the names of its files.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = writeFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	key = writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return cert, key
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
