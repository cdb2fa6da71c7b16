package recipes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

const barrierPath = "/barriers/a"

// barriers opens n sessions and names the same barrier of n parties through each.
func (v *env) barriers(n int, opts ...zksync.Option) []*zkbarrier.Barrier {
	v.t.Helper()
	all := make([]*zkbarrier.Barrier, n)
	for i := range all {
		all[i] = zkbarrier.NewBarrier(v.session(), barrierPath, n, opts...)
	}
	return all
}

// eachKind is each, for both kinds of barrier.
func eachKind(t *testing.T, f func(t *testing.T, v *env, opts ...zksync.Option)) {
	t.Helper()
	t.Run("strict", func(t *testing.T) { each(t, func(t *testing.T, v *env) { f(t, v) }) })
	t.Run("tolerant", func(t *testing.T) { each(t, func(t *testing.T, v *env) { f(t, v, zkbarrier.Tolerant()) }) })
}

// awaiting is one Await in a goroutine of its own.
type awaiting struct {
	done     chan struct{}
	index    int
	err      error
	panicked any
	at       time.Time
}

func await(ctx context.Context, b *zkbarrier.Barrier) *awaiting {
	a := &awaiting{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer func() {
			a.panicked, a.at = recover(), time.Now()
		}()
		a.index, a.err = b.Await(ctx)
	}()
	return a
}

func (a *awaiting) pending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

func awaitAll(ctx context.Context, bs ...*zkbarrier.Barrier) []*awaiting {
	all := make([]*awaiting, len(bs))
	for i, b := range bs {
		all[i] = await(ctx, b)
	}
	return all
}

// gathered waits until n parties wait at the barrier, and have nothing left to do.
func (v *env) gathered(b *zkbarrier.Barrier, n int) {
	v.t.Helper()
	if v.virtual {
		v.quiet()
		v.waitingAt(b, n)
		return
	}
	v.eventually(func() bool {
		got, err := b.Waiting(context.Background())
		require.NoError(v.t, err)
		return got == n
	}, "%d parties do not wait", n)
	v.quiet()
}

func (v *env) waitingAt(b *zkbarrier.Barrier, n int) {
	v.t.Helper()
	agrees(v, n, func() (int, error) { return b.Waiting(context.Background()) }, "parties that wait")
}

func (v *env) broken(b *zkbarrier.Barrier, want bool) {
	v.t.Helper()
	if want { // by a party that gave up, perhaps, and does it behind its back
		agrees(v, want, func() (bool, error) { return b.Broken(context.Background()) }, "broken")
		return
	}
	v.flush()
	got, err := b.Broken(context.Background())
	require.NoError(v.t, err)
	require.False(v.t, got, "broken")
}

// leave waits until all have left together, each with an index of its own.
func (v *env) leave(all ...*awaiting) {
	v.t.Helper()
	var got, want []int
	for i, a := range all {
		v.awaits(a.done, "Await to return")
		require.Nil(v.t, a.panicked)
		require.NoError(v.t, a.err)
		got, want = append(got, a.index), append(want, i)
	}
	slices.Sort(got)
	require.Equal(v.t, want, got, "indices")
}

// brokenFor waits until the barrier is broken for all of them.
func (v *env) brokenFor(all ...*awaiting) {
	v.t.Helper()
	for _, a := range all {
		v.awaits(a.done, "Await to return")
		require.ErrorIs(v.t, a.err, zksync.ErrBroken)
		require.Equal(v.t, -1, a.index)
	}
}

// emptied checks that no party has left anything behind.
func (v *env) emptied() {
	v.t.Helper()
	v.quiet()
	for _, n := range v.children(barrierPath) {
		v.queued(barrierPath+"/"+n, 0)
	}
}

// directories is how many generations have one.
func (v *env) directories() (n int) {
	v.t.Helper()
	for _, name := range v.children(barrierPath) {
		if strings.HasPrefix(name, "parties-") {
			n++
		}
	}
	return n
}

func TestAcceptance055ABarrierOfOnePassesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		for _, opts := range [][]zksync.Option{nil, {zkbarrier.Tolerant()}} {
			b := zkbarrier.NewBarrier(v.session(), barrierPath+string(rune('0'+len(opts))), 1, opts...)
			require.Equal(t, 1, b.Parties())
			for range 3 {
				start := time.Now()
				index, err := b.Await(context.Background())
				require.NoError(t, err)
				require.Zero(t, index)
				v.atOnce(start, "Await")
				v.broken(b, false)
			}
		}
	})
}

func TestAcceptance056AllPassTogether(t *testing.T) {
	for name, make := range map[string]func(v *env) []*zkbarrier.Barrier{
		"two goroutines": func(v *env) []*zkbarrier.Barrier {
			b := zkbarrier.NewBarrier(v.session(), barrierPath, 2)
			return []*zkbarrier.Barrier{b, b}
		},
		"two objects of a session": func(v *env) []*zkbarrier.Barrier {
			s := v.session()
			return []*zkbarrier.Barrier{zkbarrier.NewBarrier(s, barrierPath, 2), zkbarrier.NewBarrier(s, barrierPath, 2)}
		},
		"two sessions":           func(v *env) []*zkbarrier.Barrier { return v.barriers(2) },
		"nine sessions":          func(v *env) []*zkbarrier.Barrier { return v.barriers(9) },
		"nine tolerant sessions": func(v *env) []*zkbarrier.Barrier { return v.barriers(9, zkbarrier.Tolerant()) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				bs := make(v)
				last := len(bs) - 1
				early := awaitAll(context.Background(), bs[:last]...)
				v.gathered(bs[last], last)
				for _, a := range early {
					require.True(t, a.pending(), "%v", a.err)
				}
				start := time.Now()
				end := await(context.Background(), bs[last])
				v.leave(append(early, end)...)
				require.Zero(t, end.index, "of the last one")
				v.atOnce(start, "leaving")
				v.waitingAt(bs[0], 0)
				v.emptied()
			})
		})
	}
}

func TestAcceptance057And058AnEndOfPatienceBreaksTheBarrierForTheOthers(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.barriers(4)
		others := awaitAll(context.Background(), bs[0], bs[1], bs[1]) // the same session, and another one
		v.gathered(bs[3], 3)
		require.NoError(t, bs[3].Reset(context.Background()))
		v.brokenFor(others...)

		others = awaitAll(context.Background(), bs[0], bs[2])
		v.gathered(bs[3], 2)
		patience := v.ample(500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		start := time.Now()
		impatient := await(ctx, bs[2])
		v.awaits(impatient.done, "Await to return")
		require.ErrorIs(t, impatient.err, context.DeadlineExceeded)
		require.NotErrorIs(t, impatient.err, zksync.ErrBroken)
		v.took(start, patience, "Await")
		v.brokenFor(others...)
		v.within(start, patience, "the others' Await")
		v.broken(bs[3], true)
		v.waitingAt(bs[3], 0)
		v.emptied()

		start = time.Now()
		_, err := bs[3].Await(context.Background())
		require.ErrorIs(t, err, zksync.ErrBroken, "it stays broken")
		v.atOnce(start, "Await at a broken barrier")
	})
}

func TestACancelledPartyBreaksTheBarrier(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.barriers(3)
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		reason := errors.New("operator went home")
		a, other := await(ctx, bs[0]), await(context.Background(), bs[1])
		v.gathered(bs[2], 2)
		cancel(reason)
		v.brokenFor(other)
		v.awaits(a.done, "Await to return")
		require.ErrorIs(t, a.err, context.Canceled)
		require.ErrorIs(t, a.err, reason)

		require.NoError(t, bs[2].Reset(context.Background()))
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.Canceled)
		v.broken(bs[1], false) // that one never came
	})
}

func TestAcceptance059And060AResetBreaksTheWaitOfAllAndTheBarrierIsUsableAgain(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		bs := v.barriers(4)
		for range 3 {
			all := awaitAll(context.Background(), bs[0], bs[0], bs[1])
			v.gathered(bs[3], 3)
			require.NoError(t, bs[3].Reset(context.Background()))
			v.brokenFor(all...)
			v.broken(bs[0], false)
			v.emptied()
			v.inTime(func() bool { return v.directories() == 1 }) // that of the open generation
			v.leave(awaitAll(context.Background(), bs...)...)
		}
		require.NoError(t, bs[0].Reset(context.Background())) // with nobody waiting
		v.leave(awaitAll(context.Background(), bs...)...)
	})
}

func TestAcceptance061EachGenerationNeedsAllParties(t *testing.T) {
	eachKind(t, func(t *testing.T, v *env, opts ...zksync.Option) {
		bs := v.barriers(3, opts...)
		for i := range 5 {
			first := await(context.Background(), bs[i%3])
			v.gathered(bs[0], 1)
			second := await(context.Background(), bs[(i+1)%3])
			v.gathered(bs[0], 2)
			require.True(t, first.pending() && second.pending())
			last := await(context.Background(), bs[(i+2)%3])
			v.leave(first, second, last)
			require.Equal(t, []int{2, 1, 0}, []int{first.index, second.index, last.index})
		}
		v.emptied()
		require.Len(t, v.children(barrierPath), 2+5, "the open generation, and the ends of five")
	})
}

func TestPartiesThatComeTooLateAreInTheNextGeneration(t *testing.T) {
	eachKind(t, func(t *testing.T, v *env, opts ...zksync.Option) {
		bs := v.barriers(2, opts...)
		var all []*awaiting
		for range 7 {
			all = append(all, awaitAll(context.Background(), bs...)...)
		}
		for _, a := range all {
			v.awaits(a.done, "Await to return")
			require.NoError(t, a.err)
		}
		indices := map[int]int{}
		for _, a := range all {
			indices[a.index]++
		}
		require.Equal(t, map[int]int{0: 7, 1: 7}, indices)
		v.emptied()
	})
}

func TestAnotherNumberOfPartiesOrKindOfBarrierIsMisuse(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		require.NoError(t, v.barriers(2)[0].Reset(context.Background()))
		_, err := zkbarrier.NewBarrier(v.session(), barrierPath, 3).Await(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "2 parties, not 3")
		_, err = zkbarrier.NewBarrier(v.session(), barrierPath, 2, zkbarrier.Tolerant()).Broken(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		for _, n := range []int{-1, 0, 2001} {
			_, err = zkbarrier.NewBarrier(v.session(), barrierPath, n).Await(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
		require.ErrorIs(t, zkbarrier.NewBarrier(nil, barrierPath, 1).Reset(context.Background()), zksync.ErrMisuse)
		_, err = zkbarrier.NewBarrier(v.session(), "no/slash", 1).Waiting(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}
