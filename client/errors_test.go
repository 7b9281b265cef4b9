package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// Errors and hooks: docs/CLIENT.md, section 6.

func TestOneTableTurnsEveryReplyIntoAnError(t *testing.T) {
	// Every op that a reply can have, with what it is to an acquire or a release.
	replies := map[wire.Op]error{
		wire.OpAcquire: nil, wire.OpRelease: nil,
		wire.OpTimeout: ErrTimeout, wire.OpBusy: ErrBusy, wire.OpNotCurrent: ErrNotCurrent,
	}
	for op, want := range replies {
		f := replyFaults[op]
		if (f == nil) != (want == nil) || f != nil && f.kind != want {
			t.Errorf("%q is %v, want %v", string(op), f, want)
		}
	}
	if len(replyFaults) != 3 {
		t.Errorf("%d entries, want 3", len(replyFaults))
	}
}

func TestEveryReasonOfTheProtocolHasItsKind(t *testing.T) {
	reasons := []wire.Reason{wire.BadOp, wire.BadRequest, wire.LineTooLong, wire.BadLease, wire.BadKey, wire.AuthFailed, wire.NotActive, wire.NoLeader}
	for _, reason := range reasons {
		kind, ok := reasonKinds[reason]
		if !ok {
			t.Errorf("%s has no kind", reason)
			continue
		}
		err := endedByServer(string(reason))
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), string(reason)) {
			t.Errorf("%s became %v", reason, err)
		}
	}
	if len(reasonKinds) != len(reasons) {
		t.Errorf("%d entries, want %d", len(reasonKinds), len(reasons))
	}
	if err := endedByServer("else\x1b[2J"); !errors.Is(err, ErrProtocol) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("an unknown reason became %q", err)
	}
}

// The kinds that callers test for are the ones of the document, and bad
// configuration.
func TestEveryExportedErrorIsTestedForAndExplained(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for name := range kinds {
		known[name] = true
	}
	count := 0
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			value := spec.(*ast.ValueSpec)
			if !strings.HasPrefix(value.Names[0].Name, "Err") {
				continue
			}
			count++
			if len(value.Doc.Text()) < 40 {
				t.Errorf("%s does not say when it occurs and what happened", value.Names[0].Name)
			}
		}
	}
	if want := len(kinds) - 2; count != want { // two are the context's
		t.Errorf("%d exported errors, the tests know %d", count, want)
	}
}

func TestAnErrorsTextNamesTheKeyTheNodeWhatWasTriedAndForHowLong(t *testing.T) {
	const secret = "s3cr3t-token-of-the-test"
	inLab(t, func(l *lab) {
		n := l.node(here)
		b := l.broker(func(c *Config) { c.Token = secret })
		p := n.accept()
		p.challenge(secret)
		p.send(single)
		l.sleep(time.Second)
		var errs []error
		check := func(a *attempt, parts ...string) {
			l.Helper()
			a.wait()
			errs = append(errs, a.err)
			wantText(l, a.err, parts...)
		}
		a := l.acquire(b, "order-42", 5*time.Second)
		r := p.acquire("order-42")
		l.sleep(time.Second)
		p.send(answer(wire.OpTimeout, r))
		check(a, "acquire", `"order-42"`, here, "wait 5s", "lease 30s", "after 1s", "timeout")

		a = l.acquire(b, "order-42", 0)
		p.send(answer(wire.OpBusy, p.acquire("order-42")))
		check(a, "acquire", `"order-42"`, here, "server busy")

		a = l.release(b, "order-43", 7)
		p.send(answer(wire.OpNotCurrent, p.release("order-43", 7)))
		check(a, "release", `"order-43"`, here, "not current")

		a = l.acquire(b, "a\x1b[31mb", 5*time.Second)
		p.acquire("a\x1b[31mb")
		l.sleep(2 * time.Second)
		a.cancel()
		check(a, "acquire", `"a\x1b[31mb"`, here, "after 2s", "outcome unknown", "context canceled")

		n.set(func(n *fakeNode) { n.refuse = true })
		l.sleep(20 * time.Second)
		a = l.acquire(b, "order-44", 2*time.Second)
		check(a, "acquire", `"order-44"`, "after 2s", "timeout: not connected: ", here, "connection refused")

		a = l.acquire(b, "order 44", 2*time.Second)
		check(a, "acquire", `"order 44"`, "invalid key")
		for _, err := range errs {
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\x1b") {
				l.Errorf("error %q", err)
			}
			l.Log(err)
		}
	})
}

func TestHooksLetAnApplicationSeeAllOfThisButNeverTheToken(t *testing.T) {
	const secret = "s3cr3t-token-of-the-test"
	inLab(t, func(l *lab) {
		var log bytes.Buffer
		var events []string
		n := l.node(here)
		b := l.broker(func(c *Config) {
			c.Token = secret
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.Events = func(e Event) {
				l.mu.Lock()
				events = append(events, fmt.Sprintf("%s %s %s %s %v", e.Kind, e.Key, e.Node, e.Took, kindsOf(e.Err)))
				l.mu.Unlock()
			}
		})
		p, other := n.accept(), n.accept()
		for _, p := range []*peer{p, other} {
			l.sleep(time.Second)
			p.challenge(secret)
			p.send(single)
			synctest.Wait()
		}
		a := l.acquire(b, "k", 5*time.Second)
		r := other.acquire("k")
		l.sleep(time.Second)
		other.send(grant(r, 7))
		ticket := a.granted()
		synctest.Wait()
		go ticket.Close()
		p.send(answer(wire.OpRelease, p.release("k", 7)))
		synctest.Wait()
		b.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		got := strings.Join(events, "\n")
		want := strings.Join([]string{
			"dial  node-1:5225 1s []",
			"leader  node-1:5225 0s []",
			"dial  node-1:5225 2s []",
			"acquire k node-1:5225 1s []",
			"release k node-1:5225 0s []",
		}, "\n")
		if !strings.HasPrefix(got, want) || strings.Count(got, "session closed") != 2 {
			l.Fatalf("told:\n%s\nwant:\n%s\nand two sessions closed", got, want)
		}
		text := log.String()
		if strings.Contains(text, secret) || strings.Contains(got, secret) {
			l.Fatal("the token is told")
		}
		for _, part := range []string{"session opened", "node serves", "session closed", "node=" + here} {
			if !strings.Contains(text, part) {
				l.Errorf("the log does not say %q:\n%s", part, text)
			}
		}
	})
}

// A listener or logger that hangs must not hold up a session.
func TestASlowListenerHoldsUpNobodyElse(t *testing.T) {
	inLab(t, func(l *lab) {
		hang := make(chan struct{})
		n := l.node(here)
		b := l.broker(func(c *Config) {
			c.Events = func(e Event) {
				if e.Kind != EventAcquire {
					<-hang
				}
			}
		})
		l.atEnd(func() { close(hang) })
		n.session(single)
		block := n.session(single)
		a := l.acquire(b, "k", 5*time.Second)
		block.send(grant(block.acquire("k"), 7))
		a.granted().Detach()
		for range 2 * maxNotes {
			p := block
			p.c.Close()
			synctest.Wait()
			block = n.session(single)
		}
		late := l.acquire(b, "late", 5*time.Second)
		late.cancel()
		late.wait()
	})
}

func TestTheTokenIsInNoErrorOfADial(t *testing.T) {
	const secret = "s3cr3t-token-of-the-test"
	path := t.TempDir() + "/token"
	os.WriteFile(path, []byte(secret), 0o600)
	inLab(t, func(l *lab) {
		l.node(here).auto = refuseAll
		b := l.broker(func(c *Config) { c.TokenFile = path })
		err := b.WaitReady(context.Background())
		wantKinds(l, err, "authentication refused")
		wantText(l, err, here, "auth_failed")
		if strings.Contains(err.Error(), secret) {
			l.Fatalf("error %q", err)
		}
	})
}
