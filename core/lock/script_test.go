package lock

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts under testdata. Each begins with "new" and applies
// entries; "go test ./core/lock -rewrite" writes what came out into them.
//
//	new
//	apply [first=TOKEN] [reign=N] [elapsed=DURATION], with commands as input:
//	    grant KEY [owner=N] [lease=DURATION] [holder=TEXT]
//	    release KEY TOKEN
//	    grants PREFIX count=N [lease=DURATION]	PREFIX0, PREFIX1, …
//	    member ID [client=ADDRESS] [admin=ADDRESS]
//	    remove ID
//	    level N
//	recover quiet=DURATION
//	save		keeps a snapshot as the file
//	reload		goes on with a machine made from a snapshot
//	restore		adopts the file
//	current KEY…
//	members
//	state
//
// What is not given is as in the entry before, the reign as the machine told it; a
// grant's lease is 10 s, its owner 1.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var s script
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type script struct {
	machine *Machine
	entry   Entry
	outcome Outcome
	file    []byte
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var b strings.Builder
	switch d.Cmd {
	case "new":
		*s = script{machine: New(), file: s.file}
	case "apply":
		s.apply(t, d, &b)
	case "recover":
		s.machine.Recover(duration(t, d, "quiet", 0))
	case "save":
		s.file = encoded(t, s.machine)
	case "reload":
		s.machine = decoded(t, encoded(t, s.machine))
	case "restore":
		s.machine.Adopt(decoded(t, s.file))
	case "current":
		for _, key := range d.CmdArgs {
			printCurrent(&b, s.machine, key.Key)
		}
	case "members":
		for _, m := range s.machine.Members() {
			fmt.Fprintf(&b, "%+v\n", m)
		}
	case "state":
		printState(&b, s.machine)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	if err := s.machine.check(); err != nil {
		d.Fatalf(t, "the machine is broken: %v", err)
	}
	if b.Len() == 0 {
		return "ok\n"
	}
	return b.String()
}

func (s *script) apply(t *testing.T, d *datadriven.TestData, b *strings.Builder) {
	t.Helper()
	s.entry.First = 0
	d.MaybeScanArgs(t, "first", &s.entry.First)
	d.MaybeScanArgs(t, "reign", &s.entry.Reign)
	s.entry.Elapsed = duration(t, d, "elapsed", s.entry.Elapsed)
	s.entry.Commands = commands(t, d)
	s.machine.Apply(&s.entry, &s.outcome)
	if s.entry.First != 0 {
		s.entry.Reign = s.outcome.Reign
		fmt.Fprintf(b, "reign %d begins\n", s.outcome.Reign)
	}
	printOutcome(b, &s.entry, &s.outcome)
	fmt.Fprintf(b, "time %v\n", s.machine.Now())
}

func printCurrent(b *strings.Builder, m *Machine, key string) {
	g, ok := m.Current(key)
	if !ok {
		fmt.Fprintf(b, "%s: none\n", key)
		return
	}
	fmt.Fprintf(b, "%s: token %d, owner %d, until %v, lease %v", g.Key, g.Token, g.Owner, g.Deadline, g.Lease)
	if g.Holder != "" {
		fmt.Fprintf(b, ", held by %s", g.Holder)
	}
	b.WriteString("\n")
}

func printState(b *strings.Builder, m *Machine) {
	fmt.Fprintf(b, "time %v, %d in the table", m.Now(), m.Len())
	if at, ok := m.NextDeadline(); ok {
		fmt.Fprintf(b, ", the first deadline is at %v", at)
	}
	fmt.Fprintf(b, "\nreign %d, %v of it; the next token is %d; level %d", m.Reign(), m.Elapsed(), m.Next(), m.Level())
	if m.Fresh() {
		b.WriteString("; fresh")
	}
	if until, ok := m.QuietUntil(); ok {
		fmt.Fprintf(b, "; quiet until %v", until)
	}
	b.WriteString("\n")
}

func commands(t *testing.T, d *datadriven.TestData) []Command {
	t.Helper()
	var list []Command
	for line := range strings.Lines(d.Input) {
		name, args, err := datadriven.ParseLine(line)
		if err != nil || len(args) == 0 {
			d.Fatalf(t, "bad line %q: %v", line, err)
		}
		sub := &datadriven.TestData{Pos: d.Pos, Cmd: name, CmdArgs: args}
		c := Command{Kind: KindGrant, Key: args[0].Key, Owner: 1, Lease: duration(t, sub, "lease", 10*time.Second)}
		sub.MaybeScanArgs(t, "owner", &c.Owner)
		sub.MaybeScanArgs(t, "holder", &c.Holder)
		switch name {
		case "grant":
			list = append(list, c)
		case "release":
			list = append(list, Command{Kind: KindRelease, Key: c.Key, Token: number(t, d, args[1].Key)})
		case "member", "remove":
			m := Member{ID: c.Key, Removed: name == "remove"}
			sub.MaybeScanArgs(t, "client", &m.Client)
			sub.MaybeScanArgs(t, "admin", &m.Admin)
			list = append(list, Command{Kind: KindMember, Key: c.Key, Member: &m})
		case "level":
			list = append(list, Command{Kind: KindLevel, Key: "level", Level: uint32(number(t, d, c.Key))})
		case "grants":
			var count int
			sub.ScanArgs(t, "count", &count)
			for i := range count {
				c.Key = fmt.Sprintf("%s%d", args[0].Key, i)
				list = append(list, c)
			}
		default:
			d.Fatalf(t, "unknown line %q", line)
		}
	}
	return list
}

func number(t *testing.T, d *datadriven.TestData, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		d.Fatalf(t, "bad number: %v", err)
	}
	return n
}

func duration(t *testing.T, d *datadriven.TestData, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := otherwise.String()
	d.MaybeScanArgs(t, name, &text)
	v, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%s: %v", name, err)
	}
	return v
}

// printed is how many lines of a kind are printed before all but the last are only counted.
const printed = 8

func printOutcome(b *strings.Builder, e *Entry, out *Outcome) {
	var ended, results []string
	for _, g := range out.Ended {
		ended = append(ended, fmt.Sprintf("%s: ended, token %d, owner %d, at %v", g.Key, g.Token, g.Owner, g.Deadline))
	}
	for i, r := range out.Results {
		results = append(results, result(&e.Commands[i], r))
	}
	printList(b, ended)
	printList(b, results)
}

func printList(b *strings.Builder, lines []string) {
	for i, line := range lines {
		if i == printed && len(lines) > printed+1 {
			fmt.Fprintf(b, "… %d in all, the last:\n%s\n", len(lines), lines[len(lines)-1])
			return
		}
		fmt.Fprintln(b, line)
	}
}

func result(c *Command, r Result) string {
	text := c.Key + ": "
	switch r.Status {
	case Granted:
		return text + fmt.Sprintf("granted, token %d", r.Token)
	case Held:
		text += "held"
	case Exhausted:
		text += "exhausted"
	case Released:
		text += fmt.Sprintf("released %d", c.Token)
	case NotCurrent:
		text += fmt.Sprintf("%d is not current", c.Token)
	case Quiet:
		text += "quiet"
	case Done:
		text += "done"
	case Refused:
		text += "refused"
	}
	if r.Token != 0 {
		text += fmt.Sprintf(", but has token %d", r.Token)
	}
	return text
}
