package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Event is a watch event on its way to a client, as [Config.InterceptEvent] sees it.
type Event struct {
	Time    time.Time
	Session int64
	Kind    wire.EventType
	Path    string
}

// eventHold keeps back what comes behind it in the queue of a connection: an event, and what the client is sent after that, since no
// client hears of a change later than of what came after it. Only the answers to heartbeats pass, so that the session stays alive.
type eventHold struct {
	release <-chan struct{} // nil for never
	until   time.Time       // zero for never
	onDrop  func()
}

// over reports whether the frame may leave.
func (h *eventHold) over(now time.Time) bool {
	if h == nil || !h.until.IsZero() && !h.until.After(now) {
		return true
	}
	select {
	case <-h.release:
		return true
	default:
		return false
	}
}

// judgeEvent has an event judged. It reports false for one that is lost.
func (c *conn) judgeEvent(t wire.EventType, path string) (*eventHold, bool) {
	if c.srv.cfg.InterceptEvent == nil {
		return nil, true
	}
	v := c.srv.cfg.InterceptEvent(Event{Time: c.srv.now(), Session: c.session, Kind: t, Path: path})
	switch {
	case v.Fate == FateEventLost:
		return nil, false
	case !v.Hold:
		return nil, true
	}
	h := &eventHold{release: v.Release, onDrop: v.OnDrop}
	if v.Delay > 0 {
		h.until = time.Now().Add(v.Delay)
	}
	return h, true
}

// unhold lets go what no event keeps back any more. It returns how long the first event that still does will do so, and who may release it.
func (c *conn) unhold(now time.Time) (wait time.Duration, released <-chan struct{}) {
	for c.behind.len() > 0 {
		h := c.behind.at(0).hold
		if !h.over(now) {
			if h.until.IsZero() {
				return forever, h.release
			}
			return h.until.Sub(now), h.release
		}
		if d := c.behind.pop(); h == nil {
			c.out.push(d)
		}
	}
	return forever, nil
}

// forget drops everything that is queued for the client.
func (c *conn) forget() {
	for c.behind.len() > 0 {
		if h := c.behind.pop().hold; h != nil && h.onDrop != nil {
			h.onDrop()
		}
	}
	c.out.drop()
	c.outBytes = 0
}
