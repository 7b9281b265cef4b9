package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Whatever a file holds, taking its keys ends, every fault is one line with the
// file's name, and a document without a fault sets the same when read again.
func FuzzFile(f *testing.F) {
	names, err := filepath.Glob("testdata/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(strings.Repeat("a.", 2000) + "a = 1"))
	f.Add([]byte("cluster.members = " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000)))
	read := func(data []byte) loader {
		l := loader{config: Default(), unread: map[string]bool{}}
		l.config.sources = map[string]source{}
		l.document("f.toml", data)
		return l
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := read(data)
		for _, fault := range l.faults {
			if s := fault.String(); strings.ContainsAny(s, "\n\r\x00") || !strings.HasPrefix(s, "f.toml") {
				t.Errorf("fault %q", s)
			}
		}
		if again := read(data); !reflect.DeepEqual(l, again) {
			t.Errorf("read twice:\n%+v\n%+v", l, again)
		}
	})
}

// Members that can be read are written so that they are read the same.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{"", "a=b:1=c:2", "a=b:1=c:2=d:3,e=f:4=g:5", " a = b = c , ", "===", "a=b", ",,,", "a==b="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var members, again memberList
		if problems := members.setText(s); problems != nil {
			if members != nil || strings.ContainsAny(problems[0].text, "\n\r") {
				t.Errorf("%q: %v, %q", s, members, problems)
			}
			return
		}
		if problems := again.setText(members.String()); problems != nil || !reflect.DeepEqual(members, again) {
			t.Errorf("%q: %q, then %q %v", s, members, again, problems)
		}
	})
}

// A tokens file yields bounded tokens or faults, never both, and no fault repeats
// a part of a line.
func FuzzTokensFile(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, faults := parseTokens("tokens", data)
		if tokens != nil && faults != nil || len(tokens) > MaxTokens {
			t.Errorf("%d tokens, faults %v", len(tokens), faults)
		}
		for _, token := range tokens {
			if len(token.bytes()) == 0 || !bytes.Contains(data, token.bytes()) || token.name == "" {
				t.Errorf("token %q, %q", token.Name(), token.bytes())
			}
		}
		for _, fault := range faults {
			known := len(fault.Text) < 160 && !strings.ContainsAny(fault.Text, "\n\r")
			if !known || !strings.HasPrefix(fault.Source, "tokens:") {
				t.Errorf("fault %q", fault)
			}
		}
	})
}
