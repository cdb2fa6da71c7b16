package queue

import "sync"

// Crowd is how many must have queued, the holder among them, for entries to be sealed. Only tests change it.
var Crowd int32 = 3

// Crowds is what the objects of one session know of how many queue, for each directory: its number of children when one
// of them last learned it, from its own entry, a listing or a try. Goroutines may share it. The zero value is ready to use.
type Crowds struct {
	mu    sync.Mutex
	sizes map[string]int32 // only those above 1

	planned, running map[place]*listing
}

// mostCrowds bounds what is kept. Whoever finds nothing lists once more than others.
const mostCrowds = 1024

// note keeps the number of children of a directory.
func (c *Crowds) note(dir string, children int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sizes, dir)
	if children <= 1 {
		return
	}
	if c.sizes == nil || len(c.sizes) == mostCrowds {
		c.sizes = make(map[string]int32)
	}
	c.sizes[dir] = children
}

// in reports whether there was a crowd in the directory.
func (c *Crowds) in(dir string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.sizes[dir], 1) >= Crowd
}
