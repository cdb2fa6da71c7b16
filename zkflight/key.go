package zkflight

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	// maxKeyName is the longest node name that has a whole key.
	maxKeyName = 200
	// shownKey is how much of a longer key is shown.
	shownKey = 64
)

// nodeName is the name of a key's node, different for each key. People can read it if they can read the
// key. A long key is cut, and its hash added; no other name contains "%-", or is "%".
func nodeName(key string) string {
	switch key {
	case "":
		return "%"
	case ".", "..":
		return strings.ReplaceAll(key, ".", "%2E") // the servers refuse relative names
	}
	if name := url.PathEscape(key); len(name) <= maxKeyName {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	return url.PathEscape(key[:shownKey])[:shownKey] + "%-" + hex.EncodeToString(sum[:])
}
