//go:build !unix

package engine

import "time"

var begun = time.Now()

// processorTime is the time that has passed, where it is not known how much of it was ours.
func processorTime() time.Duration { return time.Since(begun) }
