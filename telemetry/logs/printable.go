package logs

import (
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable writes lines with everything escaped that a terminal could obey: marks that
// turn the direction of text, control characters, and what else has no picture. JSON lets
// them stand, always in strings, so that its readers see no difference; text, which quotes
// what is not printable, lets a delete stand.
type printable struct{ w io.Writer }

// Write writes one line.
func (p printable) Write(line []byte) (int, error) {
	if _, err := p.w.Write(escape(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// escape returns line itself when there is nothing to escape.
func escape(line []byte) []byte {
	var out []byte
	from := 0 // what of the line is not in out yet
	for i := 0; i < len(line); {
		r, size := rune(line[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(line[i:])
		}
		if !unicode.IsPrint(r) && r != '\n' {
			out = append(out, line[from:i]...)
			out = appendEscape(out, r)
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return line
	}
	return append(out, line[from:]...)
}

const hexDigits = "0123456789abcdef"

// appendEscape appends r as JSON escapes it.
func appendEscape(out []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return appendEscape(appendEscape(out, high), low)
	}
	return append(out, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
