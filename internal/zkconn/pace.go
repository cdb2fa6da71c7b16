package zkconn

import (
	"cmp"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Spread is how far a pause may be from its length, as a share of it, so that callers that were refused together do
// not come back together. Tests that assert instants set it to 0, before anything runs; nothing else does.
var Spread = backoff.DefaultRandomizationFactor

// NewBackOff returns pauses that grow without an end: the first is about first, each later one about twice the one
// before, but about most at most. Waiting is for the caller: the library's own Retry knows nothing of epochs.
func NewBackOff(first, most time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first), backoff.WithMaxInterval(most), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(Spread), backoff.WithMaxElapsedTime(0))
}

// Pace keeps a loop from trying again without a pause: servers that always give
// the same answer would be asked without end. The zero Pace is ready to use.
type Pace struct {
	// Free is how often there is no pause. It is for loops that have usually removed the obstacle.
	Free int
	// First and Most are about the first pause, 5 ms if it is 0, and the longest, a second if it is 0.
	First, Most time.Duration

	pauses *backoff.ExponentialBackOff
	last   time.Time // when the newest pause ended, or was to end
}

// Next is how long to wait before another attempt: [NewBackOff] says how the pauses grow. Only
// an attempt that took as long as the longest pause is a pause by itself: after it they begin again.
func (p *Pace) Next() time.Duration {
	if p.Free > 0 {
		p.Free--
		return 0
	}
	most := cmp.Or(p.Most, time.Second)
	switch {
	case p.pauses == nil:
		p.pauses = NewBackOff(cmp.Or(p.First, 5*time.Millisecond), most)
	case time.Since(p.last) >= most:
		p.pauses.Reset()
	}
	d := p.pauses.NextBackOff()
	p.last = time.Now().Add(d)
	return d
}

// sleep waits for d. It reports false if end was closed before.
func sleep(d time.Duration, end <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-end:
		return false
	}
}

// closed reports whether c is closed, that is whether what it stands for is over.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
