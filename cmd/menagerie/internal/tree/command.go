package tree

import (
	"strings"
	"unicode"
)

// Command is a line for the shell with these words; "" if one has a character that cannot be seen, so that it cannot be copied.
func Command(words ...string) string {
	line := make([]string, len(words))
	for i, w := range words {
		if strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return ""
		}
		line[i] = word(w)
	}
	return strings.Join(line, " ")
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-:,+@%"

func word(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
