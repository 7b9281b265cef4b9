package config

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// tokensFileKey is the key under which everything about the tokens file is told.
const tokensFileKey = "client_tokens_file"

// parseTokens reads the form of a tokens file: a line is TOKEN or NAME TOKEN;
// blank lines, and lines that begin with #, say nothing. Whether the tokens are
// good ones is for Validate. No note repeats any part of a line: where a line is
// not of that form, any part of it may be the secret.
func parseTokens(file string, data []byte) (tokens []Token, faults Faults) {
	fault := func(at source, text string) {
		faults = append(faults, Note{tokensFileKey, at.text, text, at.order})
	}
	if bytes.HasPrefix(data, byteOrderMark) {
		fault(fileSource(rankOther, file, 1), markProblem)
		return nil, faults
	}
	line := 0
	for raw := range bytes.Lines(data) {
		line++
		fields := bytes.Fields(raw)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		at := fileSource(rankOther, file, line)
		token, problem := parseTokenLine(fields, line)
		if problem != "" {
			fault(at, problem)
			continue
		}
		if len(tokens) == MaxTokens {
			fault(at, fmt.Sprintf("more than %d tokens; remove those that are no longer used", MaxTokens))
			return nil, faults
		}
		token.at = at
		tokens = append(tokens, token)
	}
	if faults != nil {
		return nil, faults
	}
	return tokens, nil
}

func parseTokenLine(fields [][]byte, line int) (t Token, problem string) {
	switch {
	case len(fields) > 2 || len(fields) == 2 && fields[1][0] == '#':
		return t, "more than a name and a token; a line is TOKEN or NAME TOKEN, and a comment has a line of its own"
	case len(fields) == 1:
		return NewToken(fmt.Sprintf("%s:%d", tokensFileKey, line), fields[0]), ""
	}
	name, secret := fields[0], fields[1]
	if len(secret) < ShortToken && len(name) > len(secret) && len(name) >= ShortToken {
		// The name will be shown, so a token in its place would be given away.
		return t, fmt.Sprintf("the name is longer than the token: they may have changed places; a line is NAME TOKEN, with a token of at least %d bytes", ShortToken)
	}
	if !validName(string(name)) {
		return t, nameRule("the token's name")
	}
	return NewToken(string(name), secret), ""
}

// nameRule says what validName wants of what.
func nameRule(what string) string {
	return fmt.Sprintf("%s must be 1 to %d letters, digits, dots, underscores or hyphens", what, MaxName)
}

// validName tells whether s can stand for a token or a node: in a table, a log, a
// list with commas and a file name, without quotes.
func validName(s string) bool {
	if s == "" || len(s) > MaxName || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// secretProblem returns why a token can't be used, or "".
func secretProblem(secret []byte) string {
	switch {
	case len(secret) == 0:
		return "is empty; remove it or give it a value"
	case len(secret) > MaxTokenLen:
		return fmt.Sprintf("is longer than %d bytes; choose a shorter one", MaxTokenLen)
	case !utf8.Valid(secret):
		return "is not valid UTF-8; choose one of printable characters"
	case bytes.ContainsFunc(secret, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "has a space or a control character; choose one of printable characters (names belong into client_tokens_file)"
	}
	return ""
}
