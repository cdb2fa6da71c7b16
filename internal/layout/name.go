package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// MaxName is the length of the longest name of a node that shows a whole text, and shown is how much of a longer one it shows.
const MaxName, shown = 200, 64

// Escape returns the name of the node of a text: it is escaped as in the path of a URL. Different texts have different names.
func Escape(text string) string {
	switch text {
	case "":
		return "%"
	case ".", "..":
		return strings.ReplaceAll(text, ".", "%2E") // the servers refuse relative names
	}
	return url.PathEscape(text)
}

// Unescape is the reverse of Escape. ok is false if Escape does not return this name.
func Unescape(name string) (text string, ok bool) {
	text, err := url.PathUnescape(name)
	return text, err == nil && Escape(text) == name
}

// NodeName is Escape with names of at most MaxName bytes. The name of a longer text is its beginning, "%-" and its hash. No
// other name contains "%-".
func NodeName(text string) string {
	if name := Escape(text); len(name) <= MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return url.PathEscape(text[:shown])[:shown] + "%-" + hex.EncodeToString(sum[:])
}
