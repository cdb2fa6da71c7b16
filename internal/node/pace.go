package node

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Pace keeps a loop from trying again without a pause: servers that always give
// the same answer would be asked without end. The zero Pace is ready to use.
type Pace struct {
	// Free is how often there is no pause. It is for loops in which what was in the way has mostly been dealt with.
	Free  int
	pause time.Duration
	last  time.Time // when the newest pause ended
}

// Rest waits before another attempt: 5 ms at first, then twice as long each time, up to a
// second. An attempt that took a second is a pause by itself, so after it the pause is 5 ms
// again. Rest returns early, with an error, when ctx or the epoch e of the last attempt
// ends; e may be nil. In the next epoch things are different, so there is no reason to wait.
func (p *Pace) Rest(ctx context.Context, e *zkconn.Epoch) error {
	if p.Free > 0 {
		p.Free--
		return nil
	}
	if time.Since(p.last) >= time.Second {
		p.pause = 0
	}
	p.pause = min(max(2*p.pause, 5*time.Millisecond), time.Second)
	defer func() { p.last = time.Now() }()
	return e.Pause(ctx, p.pause)
}
