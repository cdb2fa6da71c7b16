package engine

import (
	"sync/atomic"
	"time"
)

// clock is the server's own time: by it sessions expire, containers and nodes with a time to live are removed, and
// transactions are dated. What happens on the network (delays, handshakes, the time that a commit takes) goes by the process's clock.
type clock struct {
	start  time.Time    // by the process's clock
	manual bool         // it moves only with Advance
	ahead  atomic.Int64 // how far Advance has moved it
	skew   atomic.Int64 // what SetTime has added to the time of day
}

// elapsed is how long the server has existed: sessions expire by it, whatever the time of day.
func (c *clock) elapsed() time.Duration {
	if c.manual {
		return time.Duration(c.ahead.Load())
	}
	return time.Since(c.start) + time.Duration(c.ahead.Load())
}

// now is the time of day.
func (c *clock) now() time.Time {
	shift := time.Duration(c.ahead.Load() + c.skew.Load())
	if c.manual {
		return c.start.Add(shift)
	}
	return time.Now().Add(shift)
}

// at is the time of day at which so much will have elapsed.
func (c *clock) at(elapsed time.Duration) time.Time {
	return c.start.Add(elapsed + time.Duration(c.skew.Load()))
}

// reach moves the clock forward, if it is not there yet.
func (c *clock) reach(elapsed time.Duration) {
	if d := elapsed - c.elapsed(); d > 0 {
		c.ahead.Add(int64(d))
	}
}
