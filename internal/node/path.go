package node

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// maxPathLen bounds a path in bytes. The servers would take almost a megabyte,
// but the path travels with every request, several times in a transaction.
const maxPathLen = 64 << 10

// ValidatePath checks that path can be the directory of a primitive. It accepts a part of
// what ZooKeeper's own PathUtils.ValidatePath accepts. So a bad path fails here, at once and
// with a sentence, and not with a bare "bad arguments" from a server. Errors wrap ErrMisuse.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return errs.Misuse(`the path is empty: give an absolute path such as "/locks/orders"`)
	case path[0] != '/':
		return errs.Misuse(`a path begins with "/"`)
	}
	if why := PathProblem(path); why != "" {
		return errs.Misuse("the path %s", why)
	}
	return nil
}

// ValidateNode is ValidatePath for a node that is only looked at: it may be the root.
func ValidateNode(path string) error {
	if path == "/" {
		return nil
	}
	return ValidatePath(path)
}

// PathProblem returns what is wrong with path, which begins with "/", and how to correct it, or "".
func PathProblem(path string) string {
	switch {
	case path == "/":
		return `is the root: give a path below it, such as "/locks/orders"`
	case len(path) > maxPathLen:
		return fmt.Sprintf("is %d bytes long: stay within %d", len(path), maxPathLen)
	case strings.HasSuffix(path, "/"):
		return `ends with "/": remove it`
	case path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/"):
		return `belongs to the server itself: choose a path outside "/zookeeper"`
	}
	return segmentsProblem(path)
}

// segmentsProblem checks the names between the slashes of an absolute path.
func segmentsProblem(path string) string {
	for name := range strings.SplitSeq(path[1:], "/") {
		switch name {
		case "":
			return `has an empty name in it: write a single "/"`
		case ".", "..":
			return fmt.Sprintf("has the relative name %q in it: write the absolute path", name)
		}
	}
	for at, r := range path {
		if why := runeProblem(path, at, r); why != "" {
			return fmt.Sprintf("has %s at byte %d: leave it out", why, at)
		}
	}
	return ""
}

// runeProblem names the character at path[at] if ZooKeeper does not accept it. ZooKeeper's
// rule is written in UTF-16 units: d800 to f8ff are the surrogates and the private use area.
// Every character beyond the basic plane is made of two surrogates, so it is refused, too.
func runeProblem(path string, at int, r rune) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(path[at:], string(utf8.RuneError)):
		return "a byte that is not UTF-8"
	case r == 0:
		return "a NUL character"
	case r <= 0x1f, r >= 0x7f && r <= 0x9f:
		return fmt.Sprintf("the control character %U", r)
	case r >= 0xd800 && r <= 0xf8ff:
		return fmt.Sprintf("the private use character %U", r)
	case r >= 0xfff0 && r <= 0xffff:
		return fmt.Sprintf("the special character %U", r)
	case r > 0xffff:
		return fmt.Sprintf("the character %U, beyond the basic plane,", r)
	}
	return ""
}
