package proving

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
)

// A real server may stand still for seconds, for its disk or its garbage, and so may this process. This file is
// what tests in real time allow for that, so that only the product can fail them. In virtual time nothing is.

// Lifetime is the timeout of a session on real servers unless the test asks for another one: so long that no
// stall of a server, or of this process, ends it, and that waiting for its end is told from waiting for a
// stalled server.
const Lifetime = 30 * time.Second

// Slack is by how much something may come later than it should. In virtual time that is what a call
// may overrun its deadline by. Real time is for telling a call that ends by itself from one that waits
// for the servers to end a session, which takes longer by five seconds at least: a machine may be busy, and its disk
// too. What this process was kept from running meanwhile comes on top, because no call can return in that time.
func (v *Env) Slack() time.Duration {
	if v.Virtual {
		return 100 * time.Millisecond
	}
	return 4*time.Second + v.stoodStill()
}

// stoodStill is for how long this process was kept from running since the test began.
func (v *Env) stoodStill() time.Duration { return time.Duration(pulse.late.Load()) - v.late }

// pulse tells how fast this process gets on: a goroutine of its own does nothing but sleep, wake and count.
var pulse struct {
	naps  atomic.Int64
	late  atomic.Int64 // by how much all of them were too long
	start sync.Once
}

// nap is how long one should be.
const nap = 5 * time.Millisecond

func startPulse() {
	pulse.start.Do(func() {
		go func() {
			for {
				start := time.Now()
				time.Sleep(nap)
				pulse.late.Add(int64(time.Since(start) - nap))
				pulse.naps.Add(1)
			}
		}()
	})
}

// Ample is a deadline before which something has to happen. In real time that may take as long as a
// server stands still.
func (v *Env) Ample(virtual time.Duration) time.Duration {
	return v.Span(virtual, 8*time.Second)
}

// Left checks that a directory has n children at this instant. In real time a call that returned within its
// bound may have left the removal of its node to a server that stands still, so there it comes to that.
func (v *Env) Left(dir string, n int, what string) {
	v.T.Helper()
	if v.Virtual {
		require.Len(v.T, v.Children(dir), n, what)
		return
	}
	v.Queued(dir, n)
}

// Agrees checks an answer of the recipe at this instant, or, for the same reason, that it comes to it.
func Agrees[T comparable](v *Env, want T, ask func() (T, error), what string) {
	v.T.Helper()
	if v.Virtual {
		got, err := ask()
		require.NoError(v.T, err)
		require.Equal(v.T, want, got, what)
		return
	}
	v.Eventually(func() bool {
		got, err := ask()
		require.NoError(v.T, err)
		return got == want
	}, "%s: not %v", what, want)
}
