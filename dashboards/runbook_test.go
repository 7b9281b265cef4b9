package dashboards

import (
	"regexp"
	"strings"
	"testing"
)

var (
	emphasis = regexp.MustCompile(`(?:^|[^*])\*([^*\s][^*]*)\*(?:[^*]|$)`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	setting  = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)?$`)
	flag     = regexp.MustCompile(`--[a-z-]+`)
	// commanded is a program's command with its own, as far as there are any.
	commanded = regexp.MustCompile(`^ticketing ([a-z-]+)(?: ([a-z-]+))?`)
)

// What the runbook has somebody look at is there: each dashboard, and each panel on it.
func TestTheRunbookLeadsToPanelsThatExist(t *testing.T) {
	there := make(map[string]bool)
	for _, p := range panels(t) {
		there[p.page] = true
		there[p.page+": "+p.title] = true
	}
	text := strings.Join(strings.Fields(read(t, "RUNBOOK.md")), " ")
	found := emphasis.FindAllStringSubmatch(strings.ReplaceAll(text, "*, *", "*  *"), -1)
	if len(found) < 30 {
		t.Errorf("the runbook names %d panels", len(found))
	}
	for _, m := range found {
		if m[1] != "italics" && !there[m[1]] {
			t.Errorf("no dashboard has %q", m[1])
		}
	}
}

// What the runbook has somebody type or set is there: commands with their flags, and settings.
func TestTheRunbookNamesWhatExists(t *testing.T) {
	commands := read(t, "../docs/COMMANDS.md")
	documents := commands + read(t, "../docs/METRICS.md")
	known := regexp.MustCompile(`^(queue|ticketing\.key)$`) // a span, and its attribute
	for _, m := range quoted.FindAllStringSubmatch(read(t, "RUNBOOK.md"), -1) {
		text := m[1]
		if c := commanded.FindStringSubmatch(text); c != nil {
			_, section, ok := strings.Cut(commands, "\n## "+c[1]+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			// Of what has commands of its own, the next word is one.
			if strings.Contains(section, "\n### ") {
				ok = ok && strings.Contains(section, "\n### "+c[1]+" "+c[2]+"\n")
			}
			if !ok {
				t.Errorf("there is no command %q", text)
			}
			for _, f := range flag.FindAllString(text, -1) {
				if !strings.Contains(commands, "`"+f) {
					t.Errorf("%q: there is no flag %s", text, f)
				}
			}
		}
		if setting.MatchString(text) && !known.MatchString(text) && !regexp.MustCompile(`\b`+regexp.QuoteMeta(text)+`\b`).MatchString(documents) {
			t.Errorf("neither a setting nor a label: %q", text)
		}
	}
}

// Each section of another document that the runbook leads to is there.
func TestTheRunbookLeadsToSectionsThatExist(t *testing.T) {
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)(?:#([^)]*))?\)`).FindAllStringSubmatch(read(t, "RUNBOOK.md"), -1) {
		found := m[2] == ""
		for line := range strings.Lines(read(t, m[1])) {
			if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
				name := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(heading), " ", "-"))
				found = found || name == m[2]
			}
		}
		if !found {
			t.Errorf("%s has no section %s", m[1], m[2])
		}
	}
}
