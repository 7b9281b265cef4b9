package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Member is one node of a cluster as the others know it.
type Member struct {
	ID     string
	Raft   string // host:port for the other nodes
	Client string // host:port that clients are told, spelled as they spell it
	Admin  string // host:port of its admin server; may be empty
}

// String returns the member as CLUSTER_MEMBERS takes it.
func (m Member) String() string {
	s := m.ID + "=" + m.Raft + "=" + m.Client
	if m.Admin != "" {
		s += "=" + m.Admin
	}
	return s
}

// Validate returns what is wrong with the member's id and addresses, each on a line,
// or nil.
func (m Member) Validate() error {
	if problems := m.problems(); problems != nil {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

func (m Member) problems() (problems []string) {
	if !validName(m.ID) {
		problems = append(problems, nameRule("id"))
	}
	for _, a := range []struct{ name, value string }{{"raft", m.Raft}, {"client", m.Client}, {"admin", m.Admin}} {
		if a.name == "admin" && a.value == "" {
			continue
		}
		if _, problem := parseReachable(a.value); problem != "" {
			problems = append(problems, a.name+" "+problem)
		}
	}
	return problems
}

// memberList is the members of a cluster. As text they are ID=RAFT=CLIENT[=ADMIN],
// separated by commas; in the file a list of tables.
type memberList []Member

func (l *memberList) String() string {
	items := make([]string, len(*l))
	for i, m := range *l {
		items[i] = m.String()
	}
	return strings.Join(items, ",")
}

func (l *memberList) setText(s string) []problem {
	var members memberList
	for i, item := range splitList(s) {
		parts := strings.Split(item, "=")
		if len(parts) < 3 || len(parts) > 4 {
			return wrong("entry %d, %s, has %d parts; write ID=RAFT=CLIENT or ID=RAFT=CLIENT=ADMIN, with commas between members",
				i+1, quote(item), len(parts))
		}
		for j := range parts {
			parts[j] = strings.TrimSpace(parts[j])
		}
		m := Member{ID: parts[0], Raft: parts[1], Client: parts[2]}
		if len(parts) == 4 {
			m.Admin = parts[3]
		}
		members = append(members, m)
	}
	*l = members
	return nil
}

func (l *memberList) setTOML(v any) (problems []problem) {
	array, ok := v.([]any)
	if !ok {
		return wrong(`%s; write a list, as in [{ id = "a", raft = "a:5226", client = "a:5225" }]`, kindOf(v))
	}
	var members memberList
	for i, item := range array {
		m, faults := memberOf(item)
		for _, p := range faults {
			problems = append(problems, problem{
				below: fmt.Sprintf(".%d%s", i, p.below),
				text:  fmt.Sprintf("entry %d: %s", i+1, p.text),
			})
		}
		members = append(members, m)
	}
	if problems == nil {
		*l = members
	}
	return problems
}

// memberOf reads one entry of the file's list.
func memberOf(item any) (m Member, problems []problem) {
	table, ok := item.(map[string]any)
	if !ok {
		return m, wrong(`%s; write { id = "a", raft = "a:5226", client = "a:5225" }`, kindOf(item))
	}
	fields := map[string]*string{"id": &m.ID, "raft": &m.Raft, "client": &m.Client, "admin": &m.Admin}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		field := fields[name]
		if field == nil {
			problems = append(problems, problem{"." + keyName(name), "unknown key " + keyName(name) + "; a member has id, raft, client and admin"})
			continue
		}
		for _, p := range (*text)(field).setTOML(table[name]) {
			problems = append(problems, problem{"." + name, name + " " + p.text})
		}
	}
	return m, problems
}
