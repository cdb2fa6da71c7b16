// Package jvm does what the runtime of the real server does, where clients can see it: strings that are not UTF-8, the
// order of hash tables, the digits of a number.
package jvm

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Hash is the string hash of the JVM, over UTF-16 units.
func Hash(s string) uint32 {
	var h uint32
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
		h = 31*h + uint32(s[i])
	}
	if !ascii {
		h = 0
		for _, u := range utf16.Encode([]rune(s)) {
			h = 31*h + uint32(u)
		}
	}
	return h
}

// ParseInt parses a number as the JVM does, which takes the digits of every script, but for those beyond the basic plane.
func ParseInt(s string) (int64, error) {
	ascii := strings.Map(func(r rune) rune {
		for _, digits := range unicode.Nd.R16 { // each range is of whole tens
			if lo := rune(digits.Lo); r >= lo && r <= rune(digits.Hi) {
				return '0' + (r-lo)%10
			}
		}
		return r
	}, s)
	return strconv.ParseInt(ascii, 10, 32)
}
