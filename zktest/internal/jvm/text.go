package jvm

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Text turns the bytes of a string into what a JVM makes of them: what is not UTF-8 becomes U+FFFD. That
// shows: such a path is refused, and sync and getACL give the replacement back.
func Text(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	out := make([]byte, 0, len(p)+8)
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n <= 1 {
			n = malformed(p)
		}
		out = utf8.AppendRune(out, r)
		p = p[n:]
	}
	return string(out)
}

// malformed returns how many bytes at the start of p one replacement character stands for: as many as
// could have begun a character, and all three of an encoded surrogate.
func malformed(p []byte) int {
	trail := func(i int) bool { return i < len(p) && p[i]&0xc0 == 0x80 }
	switch lead := p[0]; {
	case lead < 0xe0 || lead > 0xf4 || !trail(1):
		return 1
	case lead == 0xe0 && p[1] < 0xa0, lead == 0xf0 && p[1] < 0x90, lead == 0xf4 && p[1] > 0x8f:
		return 1
	case !trail(2):
		return 2
	}
	return 3
}

// AppendText appends a string as the real server writes it: by UTF-16 units, so that a character outside
// the basic plane takes six bytes, which is not UTF-8. No path contains one, but ids do.
func AppendText(b []byte, s string) []byte {
	for _, r := range s {
		if r > 0xffff {
			return appendUnits(b, s)
		}
	}
	return append(b, s...)
}

func appendUnits(b []byte, s string) []byte {
	for _, u := range utf16.Encode([]rune(s)) {
		if utf16.IsSurrogate(rune(u)) {
			b = append(b, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
			continue
		}
		b = utf8.AppendRune(b, rune(u))
	}
	return b
}
