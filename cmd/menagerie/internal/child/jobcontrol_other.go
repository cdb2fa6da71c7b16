//go:build !linux

package child

// watchStops does nothing: only on Linux can a stop be observed without competing with
// os/exec for the end of the process.
func (c *Child) watchStops(func() bool) {}
