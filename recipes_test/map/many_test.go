package zkmap_test

import (
	"context"
	"errors"
	"fmt"
	gomaps "maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// numbered are n keys with values that begin at from.
func numbered(n, from int) map[string]int {
	all := map[string]int{}
	for i := range n {
		all[fmt.Sprint("key", i)] = from + i
	}
	return all
}

func TestAcceptance178ManyKeysAreStoredAndLoaded(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		ms := maps(v, 2)
		got, err := ms[0].LoadMany(ctx, "a", "b")
		require.NoError(t, err)
		require.Empty(t, got, "nothing is there")
		require.NoError(t, ms[0].StoreMany(ctx, nil))
		require.NoError(t, ms[0].StoreMany(ctx, map[string]int{"": 1}))
		all := numbered(70, 1)
		all[""], all["../é"] = 2, 3
		require.NoError(t, ms[0].StoreMany(ctx, all), "one is there, the others are not")
		holds(v, ms[1], all)
		require.NoError(t, ms[1].Delete(ctx, "key7"))
		next := numbered(90, 1000)
		require.NoError(t, ms[0].StoreMany(ctx, next))
		gomaps.Copy(all, next)
		holds(v, ms[1], all)
		v.Flush()
		got, err = ms[1].LoadMany(ctx, append(slices.Collect(gomaps.Keys(all)), "none", "key1")...)
		require.NoError(t, err)
		require.Equal(t, all, got)
		got, err = ms[1].LoadMany(ctx)
		require.NoError(t, err)
		require.Empty(t, got)

		require.NoError(t, zkmap.New[string, string](v.Session(), mapPath, zksync.WithCodec(zksync.Raw)).Store(ctx, "key3", "nonsense"))
		v.Flush()
		_, err = ms[1].LoadMany(ctx, "key2", "key3")
		require.ErrorContains(t, err, keysDir+"/"+bucket("key3")+"/key3")
	})
}

func TestWhatManyKeysCost(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		require.NoError(t, m.Store(ctx, "first", 1))
		thousand := numbered(1000, 0)
		keys := slices.Collect(gomaps.Keys(thousand))
		store := func() { require.NoError(t, m.StoreMany(ctx, thousand)) }
		v.Costs(3, store, "two requests read which keys are there, and one stores all: keys, buckets and gates")
		v.Costs(3, store, "all are there")
		v.Costs(2, func() {
			got, err := m.LoadMany(ctx, keys...)
			require.NoError(t, err)
			require.Equal(t, thousand, got)
		})
		v.Costs(1, func() { _, err := m.LoadMany(ctx, keys[:64]...); require.NoError(t, err) })
		v.Costs(2, func() { require.NoError(t, m.StoreMany(ctx, numbered(20, 0))) })
		v.Costs(1, func() { require.NoError(t, m.StoreMany(ctx, numbered(1, 0))) }, "as Store")
		v.Costs(6, func() { require.NoError(t, m.StoreMany(ctx, numbered(1700, 0))) }, "two transactions")
	})
}

// An answer must not be too long for the memory of anybody, nor for this client.
func TestManyLongValuesAreStoredAndLoadedWithoutLongPackets(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := zkmap.New[int, string](v.Session(), mapPath, zksync.WithCodec(zksync.Raw))
		all := map[int]string{}
		for i := range 80 {
			all[i] = "x"
			if i > 70 {
				all[i] = strings.Repeat("long ", 200_000)
			}
		}
		require.NoError(t, m.StoreMany(ctx, all))
		require.NoError(t, m.StoreMany(ctx, all))
		got, err := m.LoadMany(ctx, slices.Collect(gomaps.Keys(all))...)
		require.NoError(t, err)
		require.True(t, gomaps.Equal(all, got))
	})
}

func TestAcceptance178AMisuseStoresNoKey(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := zkmap.New[string, string](v.Session(), mapPath, zksync.WithCodec(zksync.Raw))
		for name, values := range map[string]map[string]string{
			"a long key":   {"a": "", strings.Repeat("é", 11_000): ""},
			"a long value": {"a": "", "b": strings.Repeat("x", 1<<20)},
		} {
			err := m.StoreMany(ctx, values)
			require.ErrorIs(t, err, zksync.ErrMisuse, name)
			require.ErrorContains(t, err, "zkmap: store-many "+mapPath, name)
			n, err := m.Len(ctx)
			require.NoError(t, err)
			require.Zero(t, n, name)
		}
		_, err := m.LoadMany(ctx, strings.Repeat("é", 11_000))
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

// The second transaction is lost, with the session, or the caller gives up: the error says which keys are which.
func TestAcceptance178AnErrorSaysWhichKeysAreStored(t *testing.T) {
	for name, end := range map[string]func(v *proving.Env, s *zksync.Session, cancel func()){
		"expiry":  func(v *proving.Env, s *zksync.Session, _ func()) { v.Server.Expire(s.ID()) },
		"context": func(_ *proving.Env, _ *zksync.Session, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithCancel(t.Context())
				s, other := v.Session(), maps(v, 1)[0]
				m := zkmap.New[string, int](s, mapPath)
				require.NoError(t, m.Store(ctx, "first", 1))
				held := v.Server.Intercept(zktest.On(zktest.Multi, "/**").Of(s.ID()).Nth(2).LoseReply().DelayReply(time.Hour))
				a := proving.Waits(ctx, func(ctx context.Context) error { return m.StoreMany(ctx, numbered(1500, 0)) })
				v.Quiet()
				end(v, s, cancel)
				err := v.Failed(a)
				held.Release()
				require.True(t, zksync.Ambiguous(err), "%v", err)
				var told *zkmap.StoreManyError[string]
				require.True(t, errors.As(err, &told), "%v", err)
				require.Len(t, told.Stored, 1000)
				require.Len(t, told.Unknown, 500)
				require.ErrorContains(t, err, "zkmap: store-many "+mapPath+": 1000 keys are stored, and 500 may be: ")
				for _, k := range told.Stored {
					loads(v, other, k, numbered(1500, 0)[k], true)
				}
			})
		})
	}
}

// The session ends between the two transactions. What the first has stored may have been removed since.
func TestAcceptance178KeysThatAreStoredAreNotStoredAgainInTheNextSession(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s, other := v.Session(), maps(v, 1)[0]
		m := zkmap.New[string, int](s, mapPath)
		require.NoError(t, m.Store(ctx, "first", 1))
		held := v.Server.Intercept(zktest.On(zktest.MultiRead, "/**").Of(s.ID()).Nth(3).Hold())
		a := proving.Waits(ctx, func(ctx context.Context) error { return m.StoreMany(ctx, numbered(1500, 0)) })
		v.Quiet()
		n, err := other.Len(ctx)
		require.NoError(t, err)
		require.Equal(t, 1+1000, n)
		require.NoError(t, other.Clear(ctx))
		v.Server.Expire(s.ID())
		v.Passes(a)
		held.Release()
		n, err = other.Len(ctx)
		require.NoError(t, err)
		require.Equal(t, 500, n)
	})
}

// Others store, remove and update the same keys all the time. Each key has a value of one of the calls, and all calls end.
func TestManyKeysAreStoredWhileOthersChangeThem(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(context.Background())
		ms := maps(v, 3)
		require.NoError(t, ms[0].StoreMany(ctx, numbered(100, 0)))
		var all sync.WaitGroup
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := ms[1].Update(context.Background(), "key3", func(old int, _ bool) (int, bool, error) { return old + 1, i%3 > 0, nil })
				assert.NoError(t, err)
				assert.NoError(t, ms[1].Delete(context.Background(), fmt.Sprint("key", i%100)))
			}
		})
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				for round := range 3 {
					assert.NoError(t, ms[2*i].StoreMany(context.Background(), numbered(100, 1000*(2*round+i))))
				}
			})
		}
		both.Wait()
		cancel()
		all.Wait()
		require.NoError(t, ms[0].StoreMany(context.Background(), numbered(100, 7)))
		holds(v, ms[1], numbered(100, 7))
	})
}

func TestAcceptance178EveryFaultStoresEachKeyOnce(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ms := maps(v, 2)
		return func(name string) {
			ctx := t.Context()
			for round := range 3 {
				all := numbered(6, 10*round)
				require.NoError(t, ms[round%2].StoreMany(ctx, all), name)
				v.Flush()
				got, err := ms[1-round%2].LoadMany(ctx, slices.Collect(gomaps.Keys(all))...)
				require.NoError(t, err, name)
				require.Equal(t, all, got, name)
				require.NoError(t, ms[0].Delete(ctx, fmt.Sprint("key", round)), name)
				time.Sleep(time.Minute) // a late copy would store the key again
				loads(v, ms[1], fmt.Sprint("key", round), 0, false)
			}
		}
	})
}
