package atomic_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// snapshots checks calls that are made one after the other.
type snapshots struct {
	v *proving.Env
}

func (c snapshots) loads(x *zkatomic.Value[int], want int, ok bool, version int64) int64 {
	c.v.T.Helper()
	c.v.Flush()
	s, err := x.LoadSnapshot(c.v.T.Context())
	require.NoError(c.v.T, err)
	require.Equal(c.v.T, zkatomic.Snapshot[int]{Value: want, OK: ok, Version: version}, s)
	return s.Version
}

func (c snapshots) stores(x *zkatomic.Value[int], version int64, value int, want bool) {
	c.v.T.Helper()
	stored, err := x.StoreIf(c.v.T.Context(), version, value)
	require.NoError(c.v.T, err)
	require.Equal(c.v.T, want, stored)
}

func TestAcceptance174AVersionIsGoodForOneStoreAndNeverAfterAnotherChange(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		x, y := zkatomic.NewValue[int](v.Session(), path), zkatomic.NewValue[int](v.Session(), path)
		c := snapshots{v}
		none := c.loads(x, 0, false, 0)
		require.False(t, v.Exists(values), "a look makes nothing")
		require.NoError(t, y.Store(ctx, 1))
		require.NoError(t, y.Delete(ctx))
		c.stores(x, none, 2, false)
		gone := c.loads(x, 0, false, 2)
		c.stores(y, gone, 3, true)
		first := c.loads(x, 3, true, 3)
		require.NoError(t, y.Store(ctx, 4))
		require.NoError(t, y.Store(ctx, 3))
		c.stores(x, first, 5, false)

		// The value is removed and stored again by another process, as often as it takes to have begun at 0.
		require.NoError(t, y.Delete(ctx))
		for range first {
			require.NoError(t, y.Store(ctx, 3))
			c.stores(x, first, 5, false)
		}
		now := c.loads(x, 3, true, 9)
		c.stores(x, now, 3, true)
		c.stores(y, now, 3, false)
		c.stores(x, math.MinInt64, 6, false)
		c.stores(x, math.MaxInt64, 6, false)
		c.stores(x, -1, 6, false)
		c.loads(y, 3, true, 10)
	})
}

func TestAcceptance174OfManyStoresWithOneVersionOneSucceeds(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var xs []*zkatomic.Value[int]
		for range 3 {
			xs = append(xs, zkatomic.NewValue[int](v.Session(), path))
		}
		for round := range int64(5) {
			var won atomic.Int32
			var all sync.WaitGroup
			for _, x := range xs {
				for range 4 { // calls of one object share a request
					all.Go(func() {
						stored, err := x.StoreIf(t.Context(), round, 7)
						assert.NoError(t, err)
						if stored {
							won.Add(1)
						}
					})
				}
			}
			all.Wait()
			require.EqualValues(t, 1, won.Load(), "round %d: all store the same value", round)
		}
	})
}

// Calls of one object that share a write count as those of many processes do.
func TestAVersionDoesNotOutliveWhatItsOwnObjectHasChangedAndChangedBack(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s := v.Session()
		x := zkatomic.NewValue[string](s, path)
		require.NoError(t, x.Store(ctx, "a"))
		for round := range 3 {
			before, err := x.LoadSnapshot(ctx)
			require.NoError(t, err)
			first := make(chan struct{})
			held := v.Server.Intercept(zktest.On(zktest.Multi, "/**").Of(s.ID()).Nth(1).Hold())
			go func() { defer close(first); _, _ = x.CompareAndSwap(ctx, "none", "x") }() // the others wait behind it
			v.Quiet()
			var all sync.WaitGroup
			results := make([]bool, 4)
			call := func(i int, f func() (bool, error)) {
				all.Go(func() { ok, err := f(); assert.NoError(t, err); results[i] = ok })
				v.Quiet() // so they come in this order
			}
			call(0, func() (bool, error) { return x.CompareAndSwap(ctx, "a", "b") })
			call(1, func() (bool, error) { return x.StoreIf(ctx, before.Version, "c") })
			call(2, func() (bool, error) { return x.CompareAndSwap(ctx, "b", "a") })
			call(3, func() (bool, error) { return x.StoreIf(ctx, before.Version, "d") })
			held.Release()
			<-first
			all.Wait()
			require.Equal(t, []bool{true, false, true, false}, results, round)
			stored, err := x.StoreIf(ctx, before.Version, "e")
			require.NoError(t, err)
			require.False(t, stored, "it was b meanwhile")
		}
	})
}

func TestAcceptance175LoadOrStoreStoresOnceAndLoadsTheNewest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		x, y := zkatomic.NewValue[int](v.Session(), path), zkatomic.NewValue[int](v.Session(), path)
		is := func(x *zkatomic.Value[int], value, want int, loaded bool) {
			t.Helper()
			got, was, err := x.LoadOrStore(ctx, value)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, loaded, was)
		}
		is(x, 1, 1, false)
		is(y, 2, 1, true)
		require.NoError(t, y.Store(ctx, 3))
		is(x, 4, 3, true)
		require.NoError(t, y.Delete(ctx))
		is(x, 5, 5, false)
		require.NoError(t, zkatomic.NewValue[string](v.Session(), path, zksync.WithCodec(zksync.Raw)).Store(ctx, "no number"))
		_, _, err := x.LoadOrStore(ctx, 6)
		require.ErrorContains(t, err, values+"/value")
		_, err = x.LoadSnapshot(ctx)
		require.ErrorContains(t, err, values+"/value")
	})
}

func TestTheRequestsOfSnapshots(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		v.Put(path, "")
		x, y := zkatomic.NewValue[int](proving.Calm(v), path), zkatomic.NewValue[int](proving.Calm(v), path)
		c := snapshots{v}
		storeIf := func(version int64, want bool) func() { return func() { c.stores(x, version, int(version), want) } }
		loadOrStore := func(x *zkatomic.Value[int]) func() {
			return func() { _, _, err := x.LoadOrStore(ctx, 1); require.NoError(t, err) }
		}
		v.Costs(4, storeIf(0, true), "the nodes are made")
		v.Costs(1, storeIf(1, true))
		v.Costs(1, storeIf(1, false), "the servers are asked whether the version that it knows is the newest")
		v.Costs(1, func() { _, err := x.LoadSnapshot(ctx); require.NoError(t, err) })
		v.Costs(1, loadOrStore(x), "loads")
		v.Costs(2, loadOrStore(y), "loads, the first time of a session")
		require.NoError(t, y.Delete(ctx))
		v.Costs(3, loadOrStore(x), "stores, after a change by another process")
	})
}

func TestAcceptance176AWatchOfANumberBeginsWithItAndSeesEachChange(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		n, m := zkatomic.NewInt64(v.Session(), path), zkatomic.NewInt64(v.Session(), path)
		told := proving.Tells(n.Watch(ctx), func(s zkatomic.Snapshot[int64]) string {
			return fmt.Sprintf("%d/%t/%d/%d", s.Value, s.OK, s.Version, s.Skipped)
		})
		require.Equal(t, []string{"0/true/0/0"}, told.Take(v))
		_, err := m.Add(ctx, 5)
		require.NoError(t, err)
		require.Equal(t, []string{"5/true/1/0"}, told.Take(v))
		require.NoError(t, m.Store(ctx, -5))
		require.Equal(t, []string{"-5/true/2/0"}, told.Take(v))
		swapped, err := m.CompareAndSwap(ctx, 1, 2)
		require.NoError(t, err)
		require.False(t, swapped)
		require.Empty(t, told.Take(v))

		v.Server.Stop()
		time.AfterFunc(2*time.Second, v.Server.Restart)
		for i := range int64(4) {
			require.NoError(t, m.Store(ctx, i))
		}
		time.Sleep(30 * time.Second)
		seen := told.Take(v)
		require.Contains(t, seen[len(seen)-1], "3/true/6/")

		v.Server.Set(path+"/zkatomic.Int64/value", []byte("x"))
		require.Equal(t, []string{"error"}, told.Take(v))
		require.NoError(t, m.Store(ctx, 9))
		require.Equal(t, []string{"9/true/8/0"}, told.Take(v), "it goes on")
		v.Server.DeleteAll(path + "/zkatomic.Int64")
		require.Equal(t, []string{"0/true/0/0"}, told.Take(v))
		cancel()
		require.Equal(t, []string{"error"}, told.Take(v), "that of the context")
		v.Awaits(told.Done, "the end of the loop")
	})
}
