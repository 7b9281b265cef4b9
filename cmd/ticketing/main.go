// Command ticketing is the lock server and everything that an operator or a
// script does with it. docs/COMMANDS.md describes each command.
//
// A command is a file: its flags, its help and what it does. They share the
// client flags (client.go), the exit codes and what each error means
// (exit.go, fault.go), and how results are printed (output.go). The processes
// below "ticketing run" are argued in DESIGN.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
