package zkgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// maxName is the length of the longest node name that has a whole ID, or a whole item.
const maxName = 200

// shownItem is the length of the beginning of a longer item that its node name shows.
const shownItem = 64

// escape is the name of a node for a text: escaped as in a URL's path. No other text has that name.
func escape(text string) string {
	switch text {
	case "":
		return "%"
	case ".", "..":
		return strings.ReplaceAll(text, ".", "%2E") // the servers refuse relative names
	}
	return url.PathEscape(text)
}

// idOf is the ID of the member whose node has this name. ok is false if it is not the name of a member's node.
func idOf(name string) (id string, ok bool) {
	id, err := url.PathUnescape(name)
	return id, err == nil && escape(id) == name
}

// checkID refuses an ID that cannot be the name of a node.
func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: a member without an ID", errs.ErrMisuse)
	case len(escape(id)) > maxName:
		return fmt.Errorf("%w: the ID of a member is too long: %d bytes, escaped as in a URL, and at most %d", errs.ErrMisuse, len(escape(id)), maxName)
	}
	return nil
}

// itemName is the name of the nodes of an item. That of a long item has its beginning, "%-" and its hash. No other
// name has "%-".
func itemName(item string) string {
	if name := escape(item); len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(item))
	return escape(item[:shownItem])[:shownItem] + "%-" + hex.EncodeToString(sum[:])
}
