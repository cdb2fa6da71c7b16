//go:build race

package storm_test

// The client library races with itself where a connection of its own with live watches is made anew (lastZxid, between its
// recvLoop and sendSetWatches), so nobody taps one where races are detected. Ours do not come to that.
const (
	tapping = false
	detects = " TESTFLAGS=-race"
)
