package zkflight

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	// maxKeyName is the longest name of a node that is made of a key as it is.
	maxKeyName = 200
	// shownKey is how much of a longer key is shown.
	shownKey = 64
)

// nodeName makes the name of a node of any key, another one for each. It can be read if the
// key can. A long key is cut and its hash added; no other name contains "%-", or is "%".
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
