package zkprom

import (
	"fmt"
	"path"
	"strings"
	"sync"
)

// other is the name of all that have no name.
const other = "other"

// names are the values of a label. Each is kept for as long as the process runs, so their number is bounded, and a path, of
// which there may be any number, is never one of them.
type names struct {
	patterns []string
	most     int

	mu   sync.Mutex
	seen map[string]struct{}
}

// match adds patterns.
func (n *names) match(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("zkprom: pattern %q: %w", p, err)
		}
	}
	n.patterns = append(n.patterns, patterns...)
	return nil
}

// of is the value for an object with this name and path.
func (n *names) of(name, at string) string {
	if name == "" {
		name = n.pattern(at)
	}
	if name == other {
		return other
	}
	name = strings.ToValidUTF8(name, "\uFFFD") // all that a label can have
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[name]; ok {
		return name
	}
	if len(n.seen) >= n.most {
		return other
	}
	n.seen[name] = struct{}{}
	return name
}

// pattern is the first pattern that matches.
func (n *names) pattern(at string) string {
	for _, p := range n.patterns {
		if ok, _ := path.Match(p, at); ok {
			return p
		}
	}
	return other
}
