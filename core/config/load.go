package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Sources are the places that Load reads.
type Sources struct {
	// File is the TOML file's name; empty for none.
	File string
	// Env looks an environment variable up, as os.LookupEnv does; nil for none.
	// An empty variable counts as not set.
	Env func(name string) (value string, ok bool)
	// Flags are the flags that were given on the command line, by Key.Flag; others
	// are ignored.
	Flags map[string]string
}

// Load puts a configuration together: flags over environment over file over
// defaults. It reads every file that the configuration names, and checks
// everything. Its error is Faults, all of them; the Config is not to be used then.
//
// To take changes over on SIGHUP, call it again with the same sources, and keep
// the old Config if it fails. NeedRestart tells what can't be taken over.
func Load(from Sources) (Config, Warnings, error) {
	l := loader{config: Default(), unread: map[string]bool{}}
	l.config.sources = map[string]source{}
	if from.File != "" {
		l.file(from.File)
	}
	if from.Env != nil {
		l.environment(from.Env)
	}
	l.flags(from.Flags)
	l.tokensFile()

	c := checker{c: &l.config, unread: l.unread, faults: l.faults, warnings: l.warnings}
	c.all()
	return l.config, c.sorted(), c.err()
}

type loader struct {
	config   Config
	unread   map[string]bool // keys with a value that could not be read
	faults   Faults
	warnings Warnings
}

func (l *loader) fault(at source, key, text string) {
	l.faults = append(l.faults, Note{key, at.text, text, at.order})
}

// file takes the keys of the configuration file.
func (l *loader) file(name string) {
	data, mode, problem := readFile(name)
	if problem != "" {
		l.fault(source{"", rankFile}, "", problem) // the problem names the file
		return
	}
	l.document(name, data)
	if problem := exposed(name, mode); problem != "" && len(l.config.ClientTokens) > 0 {
		at := l.config.sources["client_tokens"]
		l.warnings = append(l.warnings, Note{"client_tokens", at.text, problem, at.order})
	}
}

// document takes the keys of a TOML document.
func (l *loader) document(name string, data []byte) {
	tree, lines, err := parseTOML(data)
	if err != nil {
		line := 0
		if syntax := (*syntaxError)(nil); errors.As(err, &syntax) {
			line = syntax.line
		}
		l.fault(fileSource(rankFile, name, line), "", err.Error())
		return
	}
	d := document{name, lines}
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		section, ok := tree[key].(map[string]any)
		switch {
		case !slices.Contains(sections, key):
			l.fileKey(d, "", key, tree[key])
		case !ok:
			l.fault(d.at(key), key, fmt.Sprintf("%s; write a section, [%s], with its keys below it", kindOf(tree[key]), key))
		default:
			l.config.sources[key] = d.at(key)
			for _, name := range slices.Sorted(maps.Keys(section)) {
				l.fileKey(d, key, name, section[name])
			}
		}
	}
}

// document is a file whose keys are being taken.
type document struct {
	name  string
	lines lineIndex
}

func (d document) at(path string) source { return fileSource(rankFile, d.name, d.lines.of(path)) }

// fileKey takes one key of a section, or of none.
func (l *loader) fileKey(d document, section, name string, v any) {
	full := strings.TrimPrefix(section+"."+keyName(name), ".")
	k, ok := lookup(section, name)
	if !ok {
		l.fault(d.at(full), full, unknownKey(section, name, v))
		return
	}
	set := k.in(&l.config)
	problems := set.setTOML(v)
	if problems != nil {
		l.unread[k.Name] = true
		for _, p := range problems {
			l.fault(d.at(full+p.below), k.Name, p.text)
		}
		return
	}
	if p, ok := set.(*path); ok {
		p.relativeTo(filepath.Dir(d.name))
	}
	l.config.sources[k.Name] = d.at(full)
	for part := range d.lines {
		if strings.HasPrefix(part, k.Name+".") {
			l.config.sources[part] = d.at(part)
		}
	}
}

// environment takes the keys whose variables are set.
func (l *loader) environment(lookup func(string) (string, bool)) {
	for i, k := range keys {
		if s, ok := lookup(k.Env); ok && s != "" {
			l.textKey(k, source{"environment " + k.Env, rankEnv + i}, s)
		}
	}
}

// flags takes the flags that were given.
func (l *loader) flags(given map[string]string) {
	for i, k := range keys {
		s, ok := given[k.Flag]
		at := source{"flag --" + k.Flag, rankFlag + i}
		switch {
		case ok && k.Secret:
			l.unread[k.Name] = true
			l.fault(at, k.Name, fmt.Sprintf("every user of this machine sees the arguments of a command; change these tokens, and set client_tokens_file or %s", k.Env))
		case ok:
			l.textKey(k, at, s)
		}
	}
}

// textKey takes one key from its text, over what a lower source said.
func (l *loader) textKey(k Key, at source, s string) {
	problems := k.in(&l.config).setText(s)
	if problems != nil {
		l.unread[k.Name] = true
		for _, p := range problems {
			l.fault(at, k.Name, p.text)
		}
		return
	}
	maps.DeleteFunc(l.config.sources, func(path string, _ source) bool {
		return strings.HasPrefix(path, k.Name+".")
	})
	l.config.sources[k.Name] = at
	delete(l.unread, k.Name)
}

// tokensFile adds the client tokens of the file that the configuration names.
func (l *loader) tokensFile() {
	name := l.config.ClientTokensFile
	if name == "" {
		return
	}
	at := l.config.sources[tokensFileKey]
	data, mode, problem := readFile(name)
	if problem != "" {
		l.unread[tokensFileKey] = true
		l.fault(at, tokensFileKey, problem)
		return
	}
	if problem := exposed(name, mode); problem != "" {
		l.warnings = append(l.warnings, Note{tokensFileKey, at.text, problem, at.order})
	}
	tokens, faults := parseTokens(name, data)
	if faults != nil {
		l.unread[tokensFileKey] = true
		l.faults = append(l.faults, faults...)
		return
	}
	l.config.ClientTokens = append(l.config.ClientTokens, tokens...)
}
