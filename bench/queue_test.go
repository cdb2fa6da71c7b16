package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// faulty is a queue that hands an element out so often.
type faulty struct {
	elements chan int64
	copies   func(v int64) int
}

func (q faulty) put(_ context.Context, v int64) error {
	for range q.copies(v) {
		q.elements <- v
	}
	return nil
}

func (q faulty) receive(ctx context.Context, got func(int64) error) error {
	select {
	case v := <-q.elements:
		return got(v)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// after is over once it was asked so often.
func after(n int) func() bool {
	return func() bool { n--; return n <= 0 }
}

func TestAQueueThatLosesOrRepeatsFails(t *testing.T) {
	run := func(ctx context.Context, copies func(int64) int) (Sample, error) {
		q := faulty{make(chan int64, 1000), copies}
		return flow(ctx, []pipe{q, q}, after(100))
	}
	s, err := run(t.Context(), func(int64) int { return 1 })
	require.NoError(t, err)
	require.Equal(t, 100, s.Ops)
	require.Len(t, s.Latencies, 100)
	_, err = run(t.Context(), func(v int64) int { return 1 + int(v/50) })
	require.ErrorContains(t, err, "receive: element 50 is received twice, or was never put")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("no answer"))
	defer cancel()
	_, err = run(ctx, func(v int64) int { return int(1 - v/100) })
	require.ErrorContains(t, err, "no answer")
}

func TestANumberThatIsNotExactFails(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	p := NewPeer("lossy", map[string]Opener{Counter: func(ctx context.Context, at Site) (*Crew, error) {
		crew, err := counter(ctx, at)
		crew.Lockers[0] = generous{} // adds nothing
		return crew, err
	}})
	_, err := p.Run(t.Context(), slice(t, srv, addr, of(t, Counter, 2)))
	require.ErrorContains(t, err, "additions of one")
}
