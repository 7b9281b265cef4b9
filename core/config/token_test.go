package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const secret = "hunter2-hunter2-hunter2"

// lineEach writes a format with the numbers 0 to n-1.
func lineEach(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// A client token is never shown, in whatever way it is printed.
func TestTokensAreNeverPrinted(t *testing.T) {
	token := NewToken("alice", []byte(secret))
	c := Default()
	c.ClientTokens = []Token{token}
	hidden := struct {
		inner any
		token Token
		list  []Token
		at    *Token
	}{token, token, []Token{token}, &token}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T%v"} {
		for _, v := range []any{token, &token, c, &c, hidden, &hidden, []Token{token}, map[string]Token{"": token}} {
			if verb == "%T%v" {
				fmt.Fprintf(&out, verb, v, v)
				continue
			}
			fmt.Fprintf(&out, verb, v)
		}
	}
	for _, h := range []slog.Handler{
		slog.NewTextHandler(&out, nil),
		slog.NewJSONHandler(&out, nil),
	} {
		log := slog.New(h)
		log.Info("m", "token", token, "pointer", &token, "tokens", c.ClientTokens, "config", c, "hidden", hidden)
	}
	if err := json.NewEncoder(&out).Encode(map[string]any{"c": c, "t": token}); err != nil {
		t.Fatal(err)
	}
	shown := out.String()
	for _, form := range []string{secret, "hunter2", fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprint([]byte(secret))[1:20]} {
		if i := strings.Index(shown, form); i >= 0 {
			t.Errorf("shown: …%s…", shown[max(0, i-60):min(len(shown), i+60)])
		}
	}
	if !strings.Contains(shown, "token(alice)") {
		t.Error("the name is not shown")
	}
}

func TestTokenSecret(t *testing.T) {
	given := []byte(secret)
	token := NewToken("", given)
	given[0] = 'X'
	token.Secret()[0] = 'Y'
	if string(token.Secret()) != secret {
		t.Error("the secret can be changed from outside")
	}
	if token.Name() != "unnamed" || token.String() != "token(unnamed)" {
		t.Error(token.Name(), token)
	}
	if zero := (Token{}); len(zero.Secret()) != 0 || zero.String() != "token(unnamed)" {
		t.Error("the zero token", zero)
	}
}

// No fault or warning repeats a token, however wrong the place where it stands.
func TestNoNoteShowsAToken(t *testing.T) {
	inFile := []string{
		`client_tokens = "SECRET"`,
		`client_tokens = SECRET`,
		`client_tokens = ["SECRET]`,
		`client_tokens = ["SECRET" "SECRET"]`,
		`client_tokens = ["SECRET", "SECRET"]`,
		`client_tokens = [["SECRET"]]`,
		`client_tokens = { alice = "SECRET" }`,
		`client_tokens = ["alice SECRET"]`,
		`client_tokens = ["SECRET", ""]`,
		`client_tokens_file = ["SECRET"]`,
		"client_tokens = [123456789012345678901]",
		"client_tokens = [1e123456789012345678901]",
		`client_token = "SECRET"`,
		`client_tokens = "SECRET`,
	}
	inTokens := []string{
		"SECRET # comment", "SECRET #comment", "a SECRET b", "SECRET alice", "a/b SECRET", "\ufeffSECRET",
		"alice SECRET\nalice SECRET", "alice SECRET\x00", "alice SECRET\xff", "\xffSECRET", "alice: SECRET", "alice,SECRET\nalice,SECRET",
		"alice " + strings.Repeat("SECRET", 100),
	}
	check := func(text string, err error, warnings Warnings) {
		t.Helper()
		if err == nil {
			t.Errorf("%q is taken", text)
			return
		}
		for _, form := range []string{"hunter", "345678901"} {
			if strings.Contains(err.Error()+warnings.String(), form) {
				t.Errorf("%q is shown: %v\n%v", text, err, warnings)
			}
		}
	}
	for _, text := range inFile {
		_, warnings, err := Load(Sources{File: writeFile(t, "c.toml", strings.ReplaceAll(text, "SECRET", secret))})
		check(text, err, warnings)
	}
	for _, text := range inTokens {
		file := writeFile(t, "tokens", strings.ReplaceAll(text, "SECRET", secret))
		_, warnings, err := Load(Sources{Env: env("CLIENT_TOKENS_FILE", file, "LISTEN", ":1")})
		check(text, err, warnings)
		_, warnings, err = Load(Sources{File: file}) // given as the wrong file
		if strings.Contains(fmt.Sprint(err, warnings), "hunter") {
			t.Errorf("%q is shown: %v", text, err)
		}
	}
	_, warnings, err := Load(Sources{Env: env("CLIENT_TOKENS", secret+","+secret)})
	check("CLIENT_TOKENS", err, warnings)
}

func TestTokensFile(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string // names and secrets, or the fault
	}{
		{"one", "0123456789abcdef", "client_tokens_file:1 0123456789abcdef"},
		{"named, with odd space", "\t alice \t 0123456789abcdef \r\n\r\n", "alice 0123456789abcdef"},
		{"comments and blank lines", "# a\n\n  # b\nx\n", "client_tokens_file:4 x"},
		{"a # inside a token", "alice ab#cd", "alice ab#cd"},
		{"a short token with a short name", "alice tiny", "alice tiny"},
		{"empty", "", ""},
		{"two of them faulty", "a b c\nok\n/ b", "tokens:1 tokens:3"},
		{"too many", lineEach(MaxTokens+2, "token-%d\n"), "tokens:257"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tokens, faults := parseTokens("tokens", []byte(test.text))
			var got []string
			for _, token := range tokens {
				got = append(got, token.Name()+" "+string(token.Secret()))
			}
			for _, f := range faults {
				got = append(got, f.Source)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestATokensFileTakesAsManyAsMayBeValid(t *testing.T) {
	tokens, faults := parseTokens("tokens", []byte(lineEach(MaxTokens, "#\ntoken-%d\n")))
	if len(tokens) != MaxTokens || faults != nil {
		t.Error(len(tokens), faults)
	}
}
