package dashboards

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	rulesFile  = "prometheus/ticketing.rules.yml"
	rulesTests = "prometheus/ticketing_test.yml"
)

// alert is one alert of the rules, as it is written there.
type alert struct{ name, text string }

// alerts returns the alerts of the rules.
func alerts(t *testing.T) (list []alert) {
	t.Helper()
	for _, text := range strings.Split(read(t, rulesFile), "- alert: ")[1:] {
		name, _, _ := strings.Cut(text, "\n")
		list = append(list, alert{name, text})
	}
	if len(list) < 15 {
		t.Fatalf("found %d alerts", len(list))
	}
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// toolTime bounds one run of promtool, which takes seconds.
const toolTime = 2 * time.Minute

// promtool runs Prometheus' tool and returns what it says. Without it a test is skipped,
// but where CI is set it must be there.
func promtool(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is not installed (Debian's package prometheus)")
		}
		t.Skip("promtool is not installed (Debian's package prometheus)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "promtool", args...).CombinedOutput()
	return string(out), err
}

func TestPrometheusTakesTheRules(t *testing.T) {
	if said, err := promtool(t, "check", "rules", rulesFile); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestAlertsFireWhenTheyMustAndOnlyThen(t *testing.T) {
	if said, err := promtool(t, "test", "rules", rulesTests); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// Every alert is tried with what must make it fire and with what must not.
func TestEveryAlertIsTried(t *testing.T) {
	expected := regexp.MustCompile(`alertname: (\w+)\s*,?\s+exp_alerts:( \[\])?`)
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, m := range expected.FindAllStringSubmatch(read(t, rulesTests), -1) {
		if m[2] != "" {
			silent[m[1]] = true
		} else {
			fires[m[1]] = true
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.name] || !silent[a.name] {
			t.Errorf("%s: a case that fires: %v, one that must not: %v", a.name, fires[a.name], silent[a.name])
		}
	}
}

// Whoever is woken by an alert is told what it is, how bad it is, and where to read what to
// do; there it says what the alert means, what to look at and what to do.
func TestEveryAlertHasItsSectionInTheRunbook(t *testing.T) {
	sections := make(map[string]string)
	for _, text := range strings.Split(read(t, "RUNBOOK.md"), "\n## ")[1:] {
		name, body, _ := strings.Cut(text, "\n")
		sections[name] = body
	}
	severity := regexp.MustCompile(`\n {10}severity: (critical|warning|info)\n`)
	for _, a := range alerts(t) {
		link := "dashboards/RUNBOOK.md#" + strings.ToLower(a.name) + "\n"
		for what, there := range map[string]bool{
			"severity":             severity.MatchString(a.text),
			"summary":              strings.Contains(a.text, "\n          summary: "),
			"description":          strings.Contains(a.text, "\n          description: "),
			"link to its section":  strings.Contains(a.text, link),
			"section":              sections[a.name] != "",
			"what it means":        strings.Contains(sections[a.name], "**Means:** "),
			"what to look at":      strings.Contains(sections[a.name], "**Look at:** "),
			"what is to be done":   strings.Contains(sections[a.name], "**Do:** "),
			"no native histograms": !strings.Contains(a.text, "histogram_count("),
		} {
			if !there {
				t.Errorf("%s: missing: %s", a.name, what)
			}
		}
		delete(sections, a.name)
	}
	for name := range sections {
		t.Errorf("the runbook has a section %s without an alert", name)
	}
}

// What the provisioned Prometheus is told is what Prometheus takes, beside the rules that
// it names.
func TestPrometheusTakesItsConfiguration(t *testing.T) {
	folder := t.TempDir()
	for from, to := range map[string]string{"provisioning/prometheus.yml": "prometheus.yml", rulesFile: "ticketing.rules.yml"} {
		if err := os.WriteFile(filepath.Join(folder, to), []byte(read(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := promtool(t, "check", "config", filepath.Join(folder, "prometheus.yml")); err != nil || !strings.Contains(said, "rules found") {
		t.Errorf("%v\n%s", err, said)
	}
}
