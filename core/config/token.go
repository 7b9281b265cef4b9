package config

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
)

// Token is a client token with the name that logs and the console show for it.
// However it is printed, its secret is not.
type Token struct {
	name   string
	secret *sealed
	// at is the line of the file it came from; empty for client_tokens.
	at source
}

// sealed keeps a secret behind two pointers. Where a Token is in an unexported
// field of somebody's struct, fmt can't call Format and prints the fields; it looks
// behind one pointer then, but not behind the next.
type sealed struct{ secret *[]byte }

// NewToken returns a token. An empty name is shown as "unnamed".
func NewToken(name string, secret []byte) Token {
	secret = slices.Clone(secret)
	return Token{name: name, secret: &sealed{&secret}}
}

// Name returns what stands for the token in logs and on pages: its name in the
// file, or where it stands ("client_tokens:1", "client_tokens_file:3").
func (t Token) Name() string {
	if t.name == "" {
		return "unnamed"
	}
	return t.name
}

// Secret returns a copy of the token's bytes, for the handshake only.
func (t Token) Secret() []byte { return slices.Clone(t.bytes()) }

func (t Token) bytes() []byte {
	if t.secret == nil {
		return nil
	}
	return *t.secret.secret
}

// String returns the token's name, marked as a token.
func (t Token) String() string { return "token(" + t.Name() + ")" }

// GoString returns the same as String.
func (t Token) GoString() string { return t.String() }

// Format writes the same as String, whatever the verb.
func (t Token) Format(w fmt.State, _ rune) { io.WriteString(w, t.String()) }

// MarshalText returns the same as String, so that no encoding of a Config gives a
// secret away.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue returns the same as String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// tokenList is the tokens of client_tokens.
type tokenList []Token

// String returns nothing: there is no text form that may be shown.
func (l *tokenList) String() string { return "" }

func (l *tokenList) setText(s string) []problem {
	l.set(splitList(s))
	return nil
}

func (l *tokenList) setTOML(v any) []problem {
	secrets, problems := stringsOf(v)
	if problems == nil {
		l.set(secrets)
	}
	return problems
}

func (l *tokenList) set(secrets []string) {
	*l = nil
	for i, secret := range secrets {
		*l = append(*l, NewToken(fmt.Sprintf("client_tokens:%d", i+1), []byte(secret)))
	}
}
