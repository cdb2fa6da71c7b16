package zkcron

import (
	"log/slog"
	"sync"
	"time"
)

// tolerance is by how much a clock may differ from that of the servers' leader. The clocks of machines that are kept in
// time by the network differ by less.
const tolerance = 5 * time.Second

// clock is the time of day by which ticks begin: that of this machine, or, if that is wrong, that of the leader.
type clock struct {
	wall func() time.Time

	mu     sync.Mutex
	offset time.Duration // from the machine's clock to the leader's; 0 within the tolerance
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Without a monotonic reading, so that it follows the machine's clock when that is set.
	return c.wall().Round(0).Add(c.offset)
}

// heard compares the clocks. The leader stamped a write with mtime, in milliseconds, between sent and received by the
// machine's clock. So the difference is known up to the time that the answer took, and only what is certain counts.
func (c *clock) heard(sent, received time.Time, mtime int64, log *slog.Logger) {
	first := time.UnixMilli(mtime)
	last := first.Add(time.Millisecond)
	var offset time.Duration
	switch {
	case first.After(received):
		offset = first.Sub(received)
	case last.Before(sent):
		offset = last.Sub(sent)
	}
	if offset.Abs() <= tolerance {
		offset = 0
	}
	c.mu.Lock()
	was := c.offset
	c.offset = offset
	c.mu.Unlock()
	switch {
	case offset != 0 && was == 0:
		log.Warn("the clock of this machine is wrong, going by the servers' clock", "ahead", -offset)
	case offset == 0 && was != 0:
		log.Warn("the clock of this machine is right again")
	}
}
