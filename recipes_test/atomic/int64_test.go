package atomic_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	atomics = "/atomics"
	path    = atomics + "/a"
	int64s  = path + "/zkatomic.Int64"
	values  = path + "/zkatomic.Value"
)

// adds adds 1 n times by each of the numbers, and collects the results.
func adds(t *testing.T, ns []*zkatomic.Int64, n int) map[int64]bool {
	t.Helper()
	var mu sync.Mutex
	seen := make(map[int64]bool)
	var all sync.WaitGroup
	for _, x := range ns {
		all.Go(func() {
			for range n {
				v, err := x.Add(context.Background(), 1)
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				assert.False(t, seen[v], "%d twice", v)
				seen[v] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return seen
}

func numbers(v *proving.Env, n int) (xs []*zkatomic.Int64) {
	for range n {
		xs = append(xs, zkatomic.NewInt64(v.Session(), path))
	}
	return xs
}

func TestAcceptance133TwentyClientsAddAndAllResultsDiffer(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		xs := numbers(v, 20)
		require.Len(t, adds(t, xs, 50), 1000)
		v.Flush()
		sum, err := xs[0].Load(context.Background())
		require.NoError(t, err)
		require.EqualValues(t, 1000, sum)
	})
}

func TestANumberIsThatOfSyncAtomic(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		x := zkatomic.NewInt64(v.Session(), path)
		is := func(want int64) {
			t.Helper()
			got, err := x.Load(ctx)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		is(0)
		require.False(t, v.Exists(path), "Load makes nothing")
		sum, err := x.Add(ctx, 5)
		require.NoError(t, err)
		require.EqualValues(t, 5, sum)
		is(5)
		require.NoError(t, x.Store(ctx, -7))
		old, err := x.Swap(ctx, 9)
		require.NoError(t, err)
		require.EqualValues(t, -7, old)
		swapped, err := x.CompareAndSwap(ctx, 8, 1)
		require.NoError(t, err)
		require.False(t, swapped)
		swapped, err = x.CompareAndSwap(ctx, 9, math.MaxInt64)
		require.NoError(t, err)
		require.True(t, swapped)
		sum, err = x.Add(ctx, 2)
		require.NoError(t, err)
		require.EqualValues(t, math.MinInt64+1, sum, "it wraps")
		is(math.MinInt64 + 1)
	})
}

func TestTheRequestsOfANumber(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		add := func(x *zkatomic.Int64) func() {
			return func() { _, err := x.Add(ctx, 1); require.NoError(t, err) }
		}
		made := func() *zkatomic.Int64 { return zkatomic.NewInt64(proving.Calm(v), path) }
		v.Put(atomics, "")
		first := made()
		v.Costs(4, add(first), "it is read; the path is read; all nodes are made; the change")
		v.Costs(1, add(first))
		x, y := made(), made()
		v.Costs(1, func() { _, err := x.Load(ctx); require.NoError(t, err) })
		v.Costs(1, add(x), "it is known")
		v.Costs(2, add(y), "the first time of an object")
		v.Costs(1, func() { require.NoError(t, y.Store(ctx, 3)) })
		v.Costs(1, func() { _, err := y.Swap(ctx, 4); require.NoError(t, err) })
		v.Costs(1, func() { _, err := y.CompareAndSwap(ctx, 4, 5); require.NoError(t, err) })
		v.Costs(1, func() { _, err := y.CompareAndSwap(ctx, 4, 5); require.NoError(t, err) }, "it is not that any more")
		v.Costs(3, add(x), "refused, a read, and again")
		v.Costs(2, func() { ok, err := y.CompareAndSwap(ctx, 5, 9); require.NoError(t, err); require.False(t, ok) }, "refused, and read")
		v.Costs(1, add(y))
		v.Costs(2, func() { require.NoError(t, made().Store(ctx, 0)) })
	})
}

func TestGoroutinesThatAddShareRequests(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		x := zkatomic.NewInt64(proving.Calm(v), path)
		_, err := x.Add(context.Background(), 0)
		require.NoError(t, err)
		most := 500
		if v.Virtual { // most come before the first answer
			most = 100
		}
		v.CostsAtMost(most, func() {
			var ns []*zkatomic.Int64
			for range 1000 {
				ns = append(ns, x)
			}
			require.Len(t, adds(t, ns, 1), 1000)
		})
	})
}

func TestACallThatGivesUpReturnsAtOnceAndTheOthersGoOn(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		x := zkatomic.NewInt64(s, path)
		_, err := x.Add(context.Background(), 1)
		require.NoError(t, err)
		heal := v.Server.DropReplies(s.ID())
		ctx, start := proving.Soon(t)
		var waits sync.WaitGroup
		waits.Go(func() { // part of the write
			_, err := x.Add(ctx, 10)
			v.Took(start, proving.Deadline, "the call")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.True(t, zksync.Ambiguous(err), "%v", err)
		})
		v.Quiet()
		waits.Go(func() { // waits behind it
			ctx, cancel := context.WithTimeout(ctx, proving.Deadline/2)
			defer cancel()
			_, err := x.Add(ctx, 100)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.False(t, zksync.Ambiguous(err), "%v", err)
		})
		waits.Go(func() {
			sum, err := x.Add(context.Background(), 1000)
			assert.NoError(t, err)
			assert.Contains(t, []int64{1001, 1011}, sum)
		})
		v.Quiet()
		time.Sleep(time.Second)
		heal()
		waits.Wait()
	})
}

func TestACallOnAClosedSessionSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		x, q := zkatomic.NewInt64(s, path), zkatomic.NewSequence(s, path+"/q", zkatomic.WithBlock(10))
		_, err := q.Next(t.Context())
		require.NoError(t, err)
		heal := v.Server.Partition(s.ID())
		defer v.Later() // the servers end the session
		defer heal()
		a := proving.Waits(context.Background(), func(ctx context.Context) error { _, err := x.Add(ctx, 1); return err })
		v.Quiet()
		require.NoError(t, s.Close())
		require.ErrorIs(t, v.Failed(a), zksync.ErrClosed)
		_, err = x.Add(context.Background(), 1)
		require.ErrorIs(t, err, zksync.ErrClosed)
		_, err = q.Next(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

func TestMisuseIsToldByTheFirstCall(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, ctx := v.Session(), context.Background()
		for name, call := range map[string]func() error{
			"no session":   func() error { return zkatomic.NewInt64(nil, path).Store(ctx, 1) },
			"no path":      func() error { _, err := zkatomic.NewInt64(s, "x").Load(ctx); return err },
			"a codec":      func() error { return zkatomic.NewInt64(s, path, zksync.WithCodec(zksync.Raw)).Store(ctx, 1) },
			"linger":       func() error { return zkatomic.NewValue[int](s, path, zksync.WithLinger(time.Second)).Store(ctx, 1) },
			"another type": func() error { return zkatomic.NewValue[int](s, path, zksync.WithCodec(zksync.Raw)).Store(ctx, 1) },
			"an update":    func() error { _, err := zkatomic.NewValue[int](nil, path).Update(ctx, nil); return err },
			"a watch": func() error {
				for _, err := range zkatomic.NewValue[int](nil, path).Watch(ctx) {
					return err
				}
				return nil
			},
			"a block":   func() error { _, err := zkatomic.NewSequence(s, path, zkatomic.WithBlock(0)).Next(ctx); return err },
			"its place": func() error { return zkatomic.NewInt64(s, path, zkatomic.WithBlock(1)).Store(ctx, 1) },
			"no slots":  func() error { _, _, err := zkatomic.NewSlots(s, path, 0).Acquire(ctx); return err },
			"too big": func() error {
				return zkatomic.NewValue[[]byte](s, path, zksync.WithCodec(zksync.Raw)).Store(ctx, make([]byte, 1<<20))
			},
		} {
			require.ErrorIs(t, call(), zksync.ErrMisuse, name)
		}
		require.False(t, v.Exists(path))
	})
}
