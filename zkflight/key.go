package zkflight

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	// maxKeyName is the length of the longest node name that has a whole key.
	maxKeyName = 200
	// shownKey is the length of the beginning of a longer key that its node name shows.
	shownKey = 64
)

// nodeName is the name of a key's node, different for each key. People can read the name if they
// can read the key. The name of a long key has the beginning of the key, "%-" and a hash of the
// key. No other name contains "%-" or is "%".
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
