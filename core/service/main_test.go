package service

import (
	"flag"
	"os"
	"testing"
)

// The gates and the longer stories need more steps than rapid takes by default.
// What is given on the command line counts more.
func TestMain(m *testing.M) {
	flag.Set("rapid.steps", "200")
	os.Exit(m.Run())
}
