package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file anew")

func TestTable(t *testing.T) {
	var got bytes.Buffer
	if err := tableCommand("testdata/run.txt", &got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/table.md", got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/table.md")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("table differs from testdata/table.md (go test -update writes it anew):\n%s", got.String())
	}
}

func TestTableRefusesHalfARecord(t *testing.T) {
	_, _, _, err := readRun(strings.NewReader(`{"workload":"echo-16","round":1,"result":`))
	if err == nil || !strings.Contains(err.Error(), "echo-16") {
		t.Errorf("got %v, want an error that shows the record", err)
	}
}

func TestThousands(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 999.4: "999", 1000: "1,000", 43718.6: "43,719", 1234567: "1,234,567"} {
		if got := thousands(value); got != want {
			t.Errorf("%v: %s, want %s", value, got, want)
		}
	}
}
