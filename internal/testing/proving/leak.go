package proving

import (
	"runtime"
	"strings"

	"github.com/stretchr/testify/require"
)

// Goroutines counts those of the bubble, or of the process in real time, once all is quiet: a session that has just begun,
// such as the administrator's, answers before it has started its heartbeat.
func (v *Env) Goroutines() int {
	v.T.Helper()
	v.Quiet()
	n, _ := v.goroutines()
	return n
}

// goroutines is the count of now. In real time the stacks are of a moment before.
func (v *Env) goroutines() (n int, stacks string) {
	all := make([]byte, 4<<20)
	stacks = string(all[:runtime.Stack(all, true)])
	if !v.Virtual {
		return runtime.NumGoroutine(), stacks
	}
	// The first stack is of this goroutine. Other bubbles may be there beside this one.
	_, own, _ := strings.Cut(stacks, ", synctest bubble ")
	own, _, _ = strings.Cut(own, "]")
	return strings.Count(stacks, ", synctest bubble "+own+"]"), stacks
}

// GoroutinesBack waits until there are no more goroutines than before.
func (v *Env) GoroutinesBack(before int) {
	v.T.Helper()
	if !v.Virtual {
		defer func() {
			if v.T.Failed() {
				n, stacks := v.goroutines()
				v.T.Logf("%d now:\n%s", n, stacks)
			}
		}()
		v.Eventually(func() bool { return runtime.NumGoroutine() <= before }, "goroutines are left over, %d before", before)
		return
	}
	v.Quiet()
	n, stacks := v.goroutines()
	// A goroutine that has ended counts until the scheduler has buried it, which takes no virtual time.
	for range 1000 {
		if n <= before {
			return
		}
		runtime.Gosched()
		n, stacks = v.goroutines()
	}
	require.Failf(v.T, "goroutines are left over", "%d before, now:\n%s", before, stacks)
}
