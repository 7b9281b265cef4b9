package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	version, revision = "v1.2.3", "abc123"
	defer func() { version, revision = "", "" }()
	r := ticketing(t, nil, "version", "--json")
	var got map[string]string
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitOK {
		t.Fatalf("%v: %v", err, r)
	}
	for name, want := range map[string]string{
		"version": "v1.2.3", "revision": "abc123", "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if r := ticketing(t, nil, "version"); !strings.HasPrefix(r.stdout, "ticketing  v1.2.3\nrevision   abc123\n") {
		t.Errorf("%v", r)
	}
}

func TestRevisionOfABuild(t *testing.T) {
	rev, modified := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{{nil, "unknown"}, {[]debug.BuildSetting{rev}, "abc"}, {[]debug.BuildSetting{rev, modified}, "abc+changes"}} {
		if got := vcsRevision(c.settings); got != c.want {
			t.Errorf("%v: %q, want %q", c.settings, got, c.want)
		}
	}
}
