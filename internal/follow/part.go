package follow

import (
	"math"
	"strings"
)

// Part is what is wanted of a tree. The top always is.
type Part struct {
	Depth  int                    // how many levels below the top
	Filter func(path string) bool // returns false for a node that is left out, with everything below it; nil leaves none out
}

// Unbounded is the depth of the whole tree.
const Unbounded = math.MaxInt

// wants reports whether a job concerns what is wanted. It is asked before each read, without a lock: so the user's function may
// call the methods of a Cache.
func (t *tree) wants(j job) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(j.path, t.path), "/")
	depth := 0
	if rest != "" {
		depth = 1 + strings.Count(rest, "/")
	}
	if depth > t.part.Depth || depth == t.part.Depth && j.what == list {
		return false
	}
	if known, _ := t.find(j.path); known != nil || t.part.Filter == nil {
		return true
	}
	// The parent may not be known: a node above that is left out leaves this one out, too.
	for at := j.path[:len(j.path)-len(rest)]; rest != ""; {
		name, below, _ := strings.Cut(rest, "/")
		if at += name; !t.part.Filter(at) {
			return false
		}
		at, rest = at+"/", below
	}
	return true
}
