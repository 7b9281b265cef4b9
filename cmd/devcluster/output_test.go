package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestLinesOfAllNodesStayWhole(t *testing.T) {
	var seen strings.Builder
	out := &output{w: &seen}
	one, two := out.prefixed("n1"), out.prefixed("n2")
	fmt.Fprint(one, "half ")
	fmt.Fprint(two, "a line\nand ")
	fmt.Fprint(one, "a line\n")
	fmt.Fprint(two, strings.Repeat("x", maxLine))
	one.end()
	fmt.Fprint(two, "rest")
	two.end()
	want := "n2 | a line\nn1 | half a line\nn2 | and " + strings.Repeat("x", maxLine) + "\nn2 | rest\n"
	if seen.String() != want {
		t.Errorf("got %q", seen.String())
	}
}
