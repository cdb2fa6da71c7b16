package zkcron

import "time"

// SetClock replaces the clock of the machine. Call it before Run.
func (c *Cron) SetClock(now func() time.Time) { c.clock.wall = now }
