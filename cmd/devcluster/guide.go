package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// guide is what a person can do next.
func guide(f folder, program string) string {
	dir, spare := short(f.dir), f.node(names[beginners])
	operator := fmt.Sprintf("--ca %s --cert %s --key %s", short(f.ca()), short(f.operatorCert()), short(f.operatorKey()))
	lines := []string{
		"",
		"  A cluster of three nodes. In another terminal, in this folder:",
		"",
		"    export TICKETING_ADDR=" + strings.Join(f.clientAddrs(), ","),
		"    export TICKETING_TOKEN_FILE=" + short(f.token()),
		"    " + program + " acquire order-42 --lease 250s        prints the fencing token, TOKEN below",
		"    " + program + " release order-42 TOKEN",
		"    " + program + " bench --duration 10s",
		"",
		"    " + program + " members list --config " + dir + "/n1.toml",
		"    the same as an operator of another machine does: --node " + f.node(names[0]).raft + " in place of --config, and",
		"    " + operator,
		"    kill -9 $(cat " + dir + "/n1.pid)        a node dies; the lock stays held, the others go on",
		"",
		"  In this terminal:",
		"",
		"    n1, n2, n3 and Enter    start a node that has ended",
		"    n4, n5 and Enter        start a spare node; then have it added:",
		"                            members add " + spare.name + " --raft " + spare.raft + " --client " + spare.client + " --config ...",
		"    Enter                   show this",
		"    Ctrl-C                  stop all; what they stored stays (-fresh forgets it)",
		"",
		"",
	}
	return strings.Join(lines, "\n")
}

// short is a path as it is typed in the current folder.
func short(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return relative
}
