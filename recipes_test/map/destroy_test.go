package zkmap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A map whose nodes do not fit into one transaction is closed first. If its Destroy dies on the way, the next one goes on.
func TestALargeMapIsClosedBeforeItIsRemoved(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		dying, s := v.Session(), v.Session()
		old, m := zkmap.New[string, int](dying, mapPath), zkmap.New[string, int](s, mapPath)
		long := strings.Repeat("x", 300)
		require.NoError(t, m.Store(ctx, "first", 1))
		for i := range 2000 {
			dir := fmt.Sprintf("%s/zkmap/keys/b-%03d", mapPath, i%200)
			v.Put(fmt.Sprintf("%s/%s%d", dir, long, i), "1")
		}
		var steps atomic.Int32
		remove := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Session == dying.ID() && q.Op == zktest.Multi {
				if steps.Add(1) == 3 { // the mark and the transaction that closes the map come first
					return zktest.Verdict{Fate: zktest.LoseRequest}
				}
			}
			return zktest.Verdict{}
		})
		short, cancel := context.WithCancel(ctx)
		stopped := proving.Waits(short, old.Destroy)
		v.Eventually(func() bool { return steps.Load() >= 3 }, "it is on its way")
		cancel()
		<-stopped.Done
		require.Error(t, stopped.Err)
		require.NoError(t, dying.Close())
		remove()
		require.True(t, v.Exists(mapPath+"/zkmap/keys"))
		require.False(t, v.Exists(mapPath+"/zkmap/writers"))
		for range 2 {
			require.ErrorIs(t, m.Store(ctx, "k", 2), zksync.ErrBroken, "it is closed")
		}
		require.NoError(t, m.Destroy(ctx))
		require.False(t, v.Exists(mapPath))
		require.NoError(t, m.Store(ctx, "k", 3))
		holds(v, m, map[string]int{"k": 3})
	})
}

// Whatever the order: what was stored after the Destroy took effect is there, and what was stored before it is not.
func TestAStoreBesideADestroyIsBeforeOrAfterIt(t *testing.T) {
	for nth := 1; nth <= 12; nth++ {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			ctx := t.Context()
			s := v.Session()
			a, b := zkmap.New[string, int](s, mapPath), zkmap.New[string, int](v.Session(), mapPath)
			require.NoError(t, b.Store(ctx, "old", 1))
			held := v.Server.Intercept(zktest.On(zktest.Any, "**").Of(s.ID()).Nth(nth).Times(1).Hold())
			gone := proving.Waits(ctx, a.Destroy)
			v.Quiet()
			blocked := held.Held() > 0
			require.NoError(t, b.Store(ctx, "new", 1))
			held.Remove()
			held.Release()
			<-gone.Done
			require.NoError(t, gone.Err)
			_, there, err := b.Load(ctx, "new")
			if errors.Is(err, zksync.ErrBroken) {
				_, there, err = b.Load(ctx, "new")
			}
			require.NoError(t, err)
			_, old, err := b.Load(ctx, "old")
			require.NoError(t, err)
			require.False(t, old)
			if !blocked { // the Destroy had ended
				require.True(t, there, nth)
			}
		})
	}
}

// The value of a key says nothing of the process that keeps it, so the error names the session.
func TestDestroyNamesTheSessionsThatKeepKeys(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s := v.Session()
		a, b := zkmap.New[string, int](s, mapPath), zkmap.New[string, int](v.Session(), mapPath)
		require.NoError(t, a.StoreEphemeral(ctx, "k", 1))
		for _, m := range []*zkmap.Map[string, int]{a, b} {
			err := m.Destroy(ctx)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, fmt.Sprintf("0x%x", uint64(s.ID())))
			require.ErrorContains(t, err, mapPath)
		}
		require.NoError(t, a.Delete(ctx, "k"))
		require.NoError(t, b.Destroy(ctx))
		require.False(t, v.Exists(mapPath))
	})
}

func TestStoringNoKeysMakesNoMap(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		require.NoError(t, zkmap.New[string, int](v.Session(), mapPath).StoreMany(t.Context(), nil))
		require.False(t, v.Exists(mapPath))
	})
}

// Each key is looked at twice: before the map is closed, and after.
func TestALargeMapIsDestroyedInTimeThatGrowsWithIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := zkmap.New[string, int](v.Session(), mapPath)
		long, many := strings.Repeat("x", 900), map[string]int{}
		for i := range 2000 {
			many[fmt.Sprint(long, i)] = i
		}
		require.NoError(t, m.StoreMany(ctx, many))
		before := v.Server.Requests()
		require.NoError(t, m.Destroy(ctx))
		require.Less(t, v.Server.Requests()-before, 4*len(many))
		require.False(t, v.Exists(mapPath))
	})
}
