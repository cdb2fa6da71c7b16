package storm_test

import "sync"

// maxima are the greatest numbers that any seed has met, of what has a bound: for whoever sets the bounds.
var maxima = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// most notes a number of something.
func (w *world) most(what string, n int) {
	maxima.Lock()
	defer maxima.Unlock()
	maxima.of[what] = max(maxima.of[what], n)
}
