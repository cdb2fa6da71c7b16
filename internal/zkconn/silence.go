package zkconn

import (
	"fmt"
	"strings"
	"time"
)

// pause is a time in which this process did not run. A heartbeat that wakes late shows one. So it is known only
// while heartbeats are needed, and may have lasted up to the interval of two of them longer.
type pause struct {
	until     time.Time
	d         time.Duration
	suspended bool // only the wall clock has counted it: the machine slept, or its clock was set forward
}

// plan notes that the next heartbeat wakes at due; zero if none does.
func (c *leaseClock) plan(due time.Time) {
	c.mu.Lock()
	defer c.unlock()
	c.pause = c.longest(time.Now())
	c.due = due
}

// longest is the longest pause since the newest answered request was sent. mu is held.
func (c *leaseClock) longest(now time.Time) pause {
	late := pause{until: now}
	if !c.due.IsZero() {
		late.d = elapsed(c.due, now)
		late.suspended = late.d > 2*now.Sub(c.due)
	}
	if c.pause.d > late.d && c.pause.until.After(c.heard) {
		return c.pause
	}
	return late
}

// stood says how long this process stood still, if that was for most of the time in which nothing was answered, and
// thus is why; "" otherwise.
func (c *leaseClock) stood(now time.Time) string {
	c.mu.Lock()
	defer c.unlock()
	p := c.longest(now)
	switch {
	case 2*p.d < elapsed(c.heard, now) || p.d <= 0:
		return ""
	case p.suspended:
		return fmt.Sprintf("this machine was suspended, or its clock set forward, for at least %v", shown(p.d))
	}
	return fmt.Sprintf("this process stood still for at least %v", shown(p.d))
}

// silence says why the session cannot be proved alive any more.
func (c *leaseClock) silence(now time.Time) string {
	if stood := c.stood(now); stood != "" {
		return stood
	}
	c.mu.Lock()
	defer c.unlock()
	if silent := elapsed(c.heard, now); silent >= min(c.lag, c.span) {
		return fmt.Sprintf("no server answered for %v", shown(silent))
	}
	return fmt.Sprintf("a server answered, but their leader confirmed nothing for %v", shown(elapsed(c.proved, now)))
}

// silent is the cause of an epoch that the clock has ended.
func (e *Epoch) silent() error {
	return fmt.Errorf("%w: %s, with a session timeout of %v", ErrOver, e.clock.silence(time.Now()), e.Timeout())
}

// expired ends the epoch because a server says that its session is gone.
func (e *Epoch) expired(server string) {
	why := server + " says that the session has expired"
	if stood := e.clock.stood(time.Now()); stood != "" {
		why += ": " + stood
	}
	e.lose(fmt.Errorf("%w: %s", ErrOver, why))
}

// WhyOver says, for people, why the session has ended or can no longer be proved alive; "" if it can.
func (e *Epoch) WhyOver() string {
	err := e.Cause()
	switch {
	case err == nil && e.Valid():
		return ""
	case err == nil: // the timer that ends the epoch is late
		err = e.silent()
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), ErrOver.Error()+": "), "zksync: ")
}
