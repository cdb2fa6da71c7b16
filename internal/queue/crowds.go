package queue

import "sync"

// Crowd is how many must have queued, the holder among them, for entries to be sealed. Only tests change it.
var Crowd int32 = 3

// Crowds is what the objects of one session know of how many queue, for each directory: its number of children when one
// of them last learned it, from its own entry, a listing or a try. Goroutines may share it. The zero value is ready to use.
type Crowds struct {
	mu    sync.Mutex
	sizes map[string]int32 // only those above 1

	others           map[string]int32 // how many children of a directory are no entries: locks below it, say
	shared           shared
	planned, running map[place]*listing
}

// mostCrowds bounds what is kept. Whoever finds nothing lists once more than others.
const mostCrowds = 1024

// note keeps the number of children of a directory.
func (c *Crowds) note(dir string, children int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizes = remember(c.sizes, dir, children, 1)
}

// remember keeps n in what is known of directories if it is above least.
func remember(known map[string]int32, dir string, n, least int32) map[string]int32 {
	delete(known, dir)
	if n <= least {
		return known
	}
	if known == nil || len(known) == mostCrowds {
		known = make(map[string]int32)
	}
	known[dir] = n
	return known
}

// of is how many of the children of a directory are entries, as far as is known.
func (c *Crowds) of(dir string, children int32) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return children - c.others[dir]
}

// in reports whether there was a crowd in the directory.
func (c *Crowds) in(dir string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.sizes[dir], 1) >= Crowd
}
