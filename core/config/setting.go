package config

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	toml "github.com/pelletier/go-toml/v2"
)

// A setting is one key's place in a Config. It takes a value as text, from the
// environment or a flag, or as the file's TOML value, and returns what is wrong
// with its form; a faulty value changes nothing. Whether the value makes sense is
// for Validate. String returns the value as setText takes it.
type setting interface {
	setText(s string) []problem
	setTOML(v any) []problem
	String() string
}

// A problem is what is wrong with a value.
type problem struct {
	below string // where inside the value: ".1.raft"; empty for the whole
	text  string
}

func wrong(format string, args ...any) []problem {
	return []problem{{text: fmt.Sprintf(format, args...)}}
}

// text is a string.
type text string

func (t *text) String() string { return string(*t) }

func (t *text) setText(s string) []problem {
	*t = text(s)
	return nil
}

func (t *text) setTOML(v any) []problem {
	s, ok := v.(string)
	if !ok {
		return wrong("%s; write text in quotes, as in \"text\"", kindOf(v))
	}
	return t.setText(s)
}

// path is the name of a file or folder. In a configuration file it is relative to
// that file's folder, elsewhere to the working folder.
type path string

func (p *path) String() string             { return string(*p) }
func (p *path) setText(s string) []problem { return (*text)(p).setText(s) }
func (p *path) setTOML(v any) []problem    { return (*text)(p).setTOML(v) }
func (p *path) relativeTo(folder string) {
	if *p != "" && !filepath.IsAbs(string(*p)) {
		*p = path(filepath.Join(folder, string(*p)))
	}
}

// count is a whole number.
type count int

func (n *count) String() string { return strconv.Itoa(int(*n)) }

func (n *count) setText(s string) []problem {
	v, err := strconv.Atoi(s)
	if err != nil {
		return wrong("%s is not a whole number", quote(s))
	}
	*n = count(v)
	return nil
}

func (n *count) setTOML(v any) []problem {
	i, ok := v.(int64)
	if !ok || int64(int(i)) != i {
		return wrong("%s; write a whole number without quotes", kindOf(v))
	}
	*n = count(i)
	return nil
}

// span is a duration, written with its unit.
type span time.Duration

func (d *span) String() string { return time.Duration(*d).String() }

func (d *span) setText(s string) []problem {
	v, err := time.ParseDuration(s)
	if err != nil {
		return wrong("%s is no duration; write a number with its unit, as in 500ms", quote(s))
	}
	*d = span(v)
	return nil
}

func (d *span) setTOML(v any) []problem {
	s, ok := v.(string)
	if !ok {
		return wrong("%s; write a duration in quotes, as in \"500ms\"", kindOf(v))
	}
	return d.setText(s)
}

// toggle is true or false.
type toggle bool

func (t *toggle) String() string { return strconv.FormatBool(bool(*t)) }

func (t *toggle) setText(s string) []problem {
	v, err := strconv.ParseBool(s)
	if err != nil {
		return wrong("%s is neither true nor false", quote(s))
	}
	*t = toggle(v)
	return nil
}

func (t *toggle) setTOML(v any) []problem {
	b, ok := v.(bool)
	if !ok {
		return wrong("%s; write true or false without quotes", kindOf(v))
	}
	*t = toggle(b)
	return nil
}

// fraction is a number that need not be whole.
type fraction float64

func (f *fraction) String() string { return strconv.FormatFloat(float64(*f), 'g', -1, 64) }

func (f *fraction) setText(s string) []problem {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return wrong("%s is not a number", quote(s))
	}
	*f = fraction(v)
	return nil
}

func (f *fraction) setTOML(v any) []problem {
	switch v := v.(type) {
	case int64:
		*f = fraction(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return wrong("is not a number")
		}
		*f = fraction(v)
	default:
		return wrong("%s; write a number without quotes", kindOf(v))
	}
	return nil
}

// level is a log level.
type level slog.Level

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
}

func (l *level) String() string { return strings.ToLower(slog.Level(*l).String()) }

func (l *level) setText(s string) []problem {
	v, ok := levels[strings.ToLower(s)]
	if !ok {
		return wrong("%s is no log level; set debug, info, warn or error", quote(s))
	}
	*l = level(v)
	return nil
}

func (l *level) setTOML(v any) []problem {
	var s text
	if problems := s.setTOML(v); problems != nil {
		return problems
	}
	return l.setText(string(s))
}

// list is some strings; as text they are separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) setText(s string) []problem {
	*l = splitList(s)
	return nil
}

func (l *list) setTOML(v any) []problem {
	items, problems := stringsOf(v)
	if problems == nil {
		*l = items
	}
	return problems
}

// splitList splits text at its commas. Blank items are dropped, so that a comma at
// the end does no harm.
func splitList(s string) []string {
	var items []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// stringsOf returns the strings of a TOML array. Its problems repeat no value:
// arrays hold client tokens too.
func stringsOf(v any) (items []string, problems []problem) {
	array, ok := v.([]any)
	if !ok {
		return nil, wrong(`%s; write a list, as in ["one", "two"]`, kindOf(v))
	}
	for i, item := range array {
		s, ok := item.(string)
		if !ok {
			problems = append(problems, problem{
				below: fmt.Sprintf(".%d", i),
				text:  fmt.Sprintf("entry %d %s; write it in quotes", i+1, kindOf(item)),
			})
		}
		items = append(items, s)
	}
	return items, problems
}

// kindOf names what stands in the file where something else is expected.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "is text in quotes"
	case int64, float64:
		return "is a number"
	case bool:
		return "is true or false"
	case []any:
		return "is a list"
	case map[string]any:
		return "is a section"
	case time.Time, toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		return "is a date or time"
	}
	return "is of another kind"
}
