package barrier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// barriers opens n sessions and names the same barrier of n parties through each.
func barriers(v *proving.Env, n int, opts ...zksync.Option) []*zkbarrier.Barrier {
	v.T.Helper()
	all := make([]*zkbarrier.Barrier, n)
	for i := range all {
		all[i] = zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, n, opts...)
	}
	return all
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
func gathered(v *proving.Env, b *zkbarrier.Barrier, n int) {
	v.T.Helper()
	if v.Virtual {
		v.Quiet()
		waitingAt(v, b, n)
		return
	}
	v.Eventually(func() bool {
		got, err := b.Waiting(context.Background())
		require.NoError(v.T, err)
		return got == n
	}, "%d parties do not wait", n)
	v.Quiet()
}

func waitingAt(v *proving.Env, b *zkbarrier.Barrier, n int) {
	v.T.Helper()
	proving.Agrees(v, n, func() (int, error) { return b.Waiting(context.Background()) }, "parties that wait")
}

func broken(v *proving.Env, b *zkbarrier.Barrier, want bool) {
	v.T.Helper()
	if want { // by a party that gave up, perhaps, and does it behind its back
		proving.Agrees(v, want, func() (bool, error) { return b.Broken(context.Background()) }, "broken")
		return
	}
	v.Flush()
	got, err := b.Broken(context.Background())
	require.NoError(v.T, err)
	require.False(v.T, got, "broken")
}

// leave waits until all have left together, each with an index of its own.
func leave(v *proving.Env, all ...*awaiting) {
	v.T.Helper()
	var got, want []int
	for i, a := range all {
		v.Awaits(a.done, "Await to return")
		require.Nil(v.T, a.panicked)
		require.NoError(v.T, a.err)
		got, want = append(got, a.index), append(want, i)
	}
	slices.Sort(got)
	require.Equal(v.T, want, got, "indices")
}

// brokenFor waits until the barrier is broken for all of them.
func brokenFor(v *proving.Env, all ...*awaiting) {
	v.T.Helper()
	for _, a := range all {
		v.Awaits(a.done, "Await to return")
		require.ErrorIs(v.T, a.err, zksync.ErrBroken)
		require.Equal(v.T, -1, a.index)
	}
}

// emptied checks that no party has left anything behind.
func emptied(v *proving.Env) {
	v.T.Helper()
	v.Quiet()
	for _, n := range v.Children(proving.BarrierPath) {
		v.Queued(proving.BarrierPath+"/"+n, 0)
	}
}

// directories is how many generations have one.
func directories(v *proving.Env) (n int) {
	v.T.Helper()
	for _, name := range v.Children(proving.BarrierPath) {
		if strings.HasPrefix(name, "parties-") {
			n++
		}
	}
	return n
}

func TestAcceptance055ABarrierOfOnePassesAtOnce(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		b := zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 1)
		require.Equal(t, 1, b.Parties())
		for range 3 {
			start := time.Now()
			index, err := b.Await(context.Background())
			require.NoError(t, err)
			require.Zero(t, index)
			v.AtOnce(start, "Await")
			broken(v, b, false)
		}
	})
}

func TestAcceptance056AllPassTogether(t *testing.T) {
	for name, make := range map[string]func(v *proving.Env) []*zkbarrier.Barrier{
		"two goroutines": func(v *proving.Env) []*zkbarrier.Barrier {
			b := zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 2)
			return []*zkbarrier.Barrier{b, b}
		},
		"two objects of a session": func(v *proving.Env) []*zkbarrier.Barrier {
			s := v.Session()
			return []*zkbarrier.Barrier{zkbarrier.NewBarrier(s, proving.BarrierPath, 2), zkbarrier.NewBarrier(s, proving.BarrierPath, 2)}
		},
		"two sessions":  func(v *proving.Env) []*zkbarrier.Barrier { return barriers(v, 2) },
		"nine sessions": func(v *proving.Env) []*zkbarrier.Barrier { return barriers(v, 9) },
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				bs := make(v)
				last := len(bs) - 1
				early := awaitAll(context.Background(), bs[:last]...)
				gathered(v, bs[last], last)
				for _, a := range early {
					require.True(t, a.pending(), "%v", a.err)
				}
				start := time.Now()
				end := await(context.Background(), bs[last])
				leave(v, append(early, end)...)
				require.Zero(t, end.index, "of the last one")
				v.AtOnce(start, "leaving")
				waitingAt(v, bs[0], 0)
				emptied(v)
			})
		})
	}
}

func TestAcceptance057And058AnEndOfPatienceBreaksTheBarrierForTheOthers(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 4)
		others := awaitAll(context.Background(), bs[0], bs[1], bs[1]) // the same session, and another one
		gathered(v, bs[3], 3)
		require.NoError(t, bs[3].Reset(context.Background()))
		brokenFor(v, others...)

		others = awaitAll(context.Background(), bs[0], bs[2])
		gathered(v, bs[3], 2)
		patience := v.Ample(500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		start := time.Now()
		impatient := await(ctx, bs[2])
		v.Awaits(impatient.done, "Await to return")
		require.ErrorIs(t, impatient.err, context.DeadlineExceeded)
		require.NotErrorIs(t, impatient.err, zksync.ErrBroken)
		v.Took(start, patience, "Await")
		brokenFor(v, others...)
		v.Within(start, patience, "the others' Await")
		broken(v, bs[3], true)
		waitingAt(v, bs[3], 0)
		emptied(v)

		start = time.Now()
		_, err := bs[3].Await(context.Background())
		require.ErrorIs(t, err, zksync.ErrBroken, "it stays broken")
		v.AtOnce(start, "Await at a broken barrier")
	})
}

func TestACancelledPartyBreaksTheBarrier(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 3)
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		reason := errors.New("operator went home")
		a, other := await(ctx, bs[0]), await(context.Background(), bs[1])
		gathered(v, bs[2], 2)
		cancel(reason)
		brokenFor(v, other)
		v.Awaits(a.done, "Await to return")
		require.ErrorIs(t, a.err, context.Canceled)
		require.ErrorIs(t, a.err, reason)

		require.NoError(t, bs[2].Reset(context.Background()))
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.Canceled)
		broken(v, bs[1], false) // that one never came
	})
}

func TestAcceptance059And060AResetBreaksTheWaitOfAllAndTheBarrierIsUsableAgain(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 4)
		for range 3 {
			all := awaitAll(context.Background(), bs[0], bs[0], bs[1])
			gathered(v, bs[3], 3)
			require.NoError(t, bs[3].Reset(context.Background()))
			brokenFor(v, all...)
			broken(v, bs[0], false)
			emptied(v)
			inTime(v, func() bool { return directories(v) == 1 }) // that of the open generation
			leave(v, awaitAll(context.Background(), bs...)...)
		}
		require.NoError(t, bs[0].Reset(context.Background())) // with nobody waiting
		leave(v, awaitAll(context.Background(), bs...)...)
	})
}

func TestAcceptance061EachGenerationNeedsAllParties(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 3)
		for i := range 5 {
			first := await(context.Background(), bs[i%3])
			gathered(v, bs[0], 1)
			second := await(context.Background(), bs[(i+1)%3])
			gathered(v, bs[0], 2)
			require.True(t, first.pending() && second.pending())
			last := await(context.Background(), bs[(i+2)%3])
			leave(v, first, second, last)
			require.Equal(t, []int{2, 1, 0}, []int{first.index, second.index, last.index})
		}
		emptied(v)
		require.Len(t, v.Children(proving.BarrierPath), 2+5, "the open generation, and the ends of five")
	})
}

func TestPartiesThatComeTooLateAreInTheNextGeneration(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 2)
		var all []*awaiting
		for range 7 {
			all = append(all, awaitAll(context.Background(), bs...)...)
		}
		for _, a := range all {
			v.Awaits(a.done, "Await to return")
			require.NoError(t, a.err)
		}
		indices := map[int]int{}
		for _, a := range all {
			indices[a.index]++
		}
		require.Equal(t, map[int]int{0: 7, 1: 7}, indices)
		emptied(v)
	})
}

func TestAnotherNumberOfPartiesOfABarrierIsMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		require.NoError(t, barriers(v, 2)[0].Reset(context.Background()))
		_, err := zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 3).Await(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, "number of parties of the barrier is 2, not 3; use the same number everywhere, or first remove the barrier with menagerie reset")
		v.Put("/tolerant", `{"parties":2,"tolerant":true,"generation":0}`) // which an older version made
		_, err = zkbarrier.NewBarrier(v.Session(), "/tolerant", 2).Broken(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
		for _, n := range []int{-1, 0, 2001} {
			_, err = zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, n).Await(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse)
		}
		require.ErrorIs(t, zkbarrier.NewBarrier(nil, proving.BarrierPath, 1).Reset(context.Background()), zksync.ErrMisuse)
		_, err = zkbarrier.NewBarrier(v.Session(), "no/slash", 1).Waiting(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}
