package engine

import "time"

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
