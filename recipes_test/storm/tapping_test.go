//go:build !race

package storm_test

// tapping has one process in three use a connection that it tapped.
const (
	tapping = true
	detects = ""
)
