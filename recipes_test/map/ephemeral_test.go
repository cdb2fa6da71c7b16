package zkmap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// kept opens two sessions, names the same map through each, and has the first keep "k".
func kept(v *proving.Env) (owner, other *zksync.Session, mine, theirs *zkmap.Map[string, int]) {
	v.T.Helper()
	owner, other = v.Session(), v.Session()
	mine, theirs = zkmap.New[string, int](owner, mapPath), zkmap.New[string, int](other, mapPath)
	require.NoError(v.T, mine.StoreEphemeral(v.T.Context(), "k", 1))
	loads(v, theirs, "k", 1, true)
	return owner, other, mine, theirs
}

func TestAcceptance180AnEphemeralKeyGoesWithItsSession(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		owner, other, mine, theirs := kept(v)
		err := theirs.StoreEphemeral(ctx, "k", 9)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, fmt.Sprintf("zkmap: store-ephemeral %s: session 0x%x keeps the key", mapPath, owner.ID()))
		require.NoError(t, mine.StoreEphemeral(ctx, "k", 2), "its owner may")
		loads(v, theirs, "k", 2, true)
		err = theirs.Destroy(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, fmt.Sprintf("the map is in use; 1 of its entries go with session 0x%x", owner.ID()), "and no part of a value")
		require.NoError(t, theirs.StoreEphemeral(ctx, "of the other", 3))
		require.NoError(t, mine.Store(ctx, "stays", 4))
		require.NoError(t, owner.Close())
		v.Eventually(func() bool { _, there, err := theirs.Load(ctx, "k"); return err == nil && !there }, "it has gone")
		holds(v, theirs, map[string]int{"of the other": 3, "stays": 4})
		require.NoError(t, theirs.StoreEphemeral(ctx, "k", 5), "now it is free")
		require.NoError(t, theirs.StoreEphemeral(ctx, "stays", 6), "a key that stays is replaced")
		last := zkmap.New[string, int](v.Session(), mapPath)
		v.Flush()
		holds(v, last, map[string]int{"of the other": 3, "stays": 6, "k": 5})
		require.NoError(t, other.Close())
		v.Eventually(func() bool { n, err := last.Len(ctx); return err == nil && n == 0 }, "all have gone")
	})
}

// What others do to an ephemeral key is what they do to any key. It goes with its session all the same, until it is deleted.
func TestAcceptance180OthersChangeAnEphemeralKeyAndItStillGoes(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, m *zkmap.Map[string, int]) error{
		"Store": func(ctx context.Context, m *zkmap.Map[string, int]) error { return m.Store(ctx, "k", 2) },
		"StoreMany": func(ctx context.Context, m *zkmap.Map[string, int]) error {
			return m.StoreMany(ctx, map[string]int{"k": 2, "l": 2})
		},
		"Swap": func(ctx context.Context, m *zkmap.Map[string, int]) error {
			_, _, err := m.Swap(ctx, "k", 2)
			return err
		},
		"CompareAndSwap": func(ctx context.Context, m *zkmap.Map[string, int]) error {
			_, err := m.CompareAndSwap(ctx, "k", 1, 2)
			return err
		},
		"Update": func(ctx context.Context, m *zkmap.Map[string, int]) error {
			_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				ctx := t.Context()
				owner, _, mine, theirs := kept(v)
				require.NoError(t, change(ctx, theirs))
				loads(v, mine, "k", 2, true)
				require.NoError(t, mine.StoreEphemeral(ctx, "k", 3))
				loads(v, theirs, "k", 3, true)
				require.NoError(t, owner.Close())
				v.Eventually(func() bool { _, there, err := theirs.Load(ctx, "k"); return err == nil && !there }, "it has gone")
			})
		})
	}
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		owner, _, mine, theirs := kept(v)
		old, loaded, err := theirs.LoadAndDelete(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, 1, old)
		require.True(t, loaded)
		loads(v, mine, "k", 0, false)
		require.NoError(t, theirs.Store(ctx, "k", 7))
		v.Flush()
		require.NoError(t, mine.Store(ctx, "k", 8), "it stays now")
		require.NoError(t, owner.Close())
		v.Quiet()
		loads(v, theirs, "k", 8, true)
	})
}

// The session ends while the servers still have it, and in each other way. The next session keeps the key at once.
func TestAcceptance180AfterALossTheKeyIsStoredAgain(t *testing.T) {
	for name, lose := range map[string]func(v *proving.Env, s *zksync.Session){
		"expiry": func(v *proving.Env, s *zksync.Session) { v.Server.Expire(s.ID()) },
		"partition": func(v *proving.Env, s *zksync.Session) {
			heal := v.Server.Partition(s.ID())
			time.Sleep(s.Timeout())
			heal()
		},
		"given up before the servers end it": func(v *proving.Env, s *zksync.Session) {
			heal := v.Server.Freeze()
			time.Sleep(s.Timeout() * 2)
			heal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx := t.Context()
				owner, _, mine, theirs := kept(v)
				before := owner.ID()
				lose(v, owner)
				require.NoError(t, mine.StoreEphemeral(ctx, "k", 2))
				require.NotEqual(t, before, owner.ID())
				v.Later()
				loads(v, theirs, "k", 2, true)
				require.NoError(t, owner.Close())
				v.Quiet()
				loads(v, theirs, "k", 0, false)
			})
		})
	}
}

// The session of the key ends while an Update runs, and another stores the key. It has the version that was read once more.
func TestAcceptance180AChangeOfAnEphemeralKeyDoesNotOverwriteASuccessor(t *testing.T) {
	for at := 1; at <= 2; at++ { // a change of another's ephemeral key runs its function twice
		for _, keeps := range []bool{false, true} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx := t.Context()
				owner, _, _, theirs := kept(v)
				third := maps(v, 1)[0]
				_, _, err := third.Load(ctx, "k")
				require.NoError(t, err)
				stored := make(chan error, 1)
				calls := 0
				_, err = theirs.Update(ctx, "k", func(old int, _ bool) (int, bool, error) {
					if calls++; calls != at {
						return old + 1, true, nil
					}
					v.Server.Expire(owner.ID())
					go func() {
						if keeps {
							stored <- third.StoreEphemeral(ctx, "k", 10)
						} else {
							stored <- third.Store(ctx, "k", 10)
						}
					}()
					time.Sleep(100 * time.Millisecond)
					return old + 1, true, nil
				})
				require.NoError(t, err)
				require.NoError(t, <-stored)
				got, there, err := third.Load(ctx, "k")
				require.NoError(t, err)
				require.True(t, there)
				require.Contains(t, []int{10, 11}, got, "call %d, ephemeral %v", at, keeps)
			})
		}
	}
}

func TestWhatAnEphemeralKeyCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := zkmap.New[string, int](proving.Calm(v), mapPath)
		other := zkmap.New[string, int](proving.Calm(v), mapPath)
		require.NoError(t, m.Store(ctx, "first", 1))
		loads(v, other, "first", 1, true)
		keep := func(m *zkmap.Map[string, int], key string) func() {
			return func() { require.NoError(t, m.StoreEphemeral(ctx, key, 1)) }
		}
		v.Costs(3, keep(m, "k"), "the bucket, which is not there, and its creation")
		v.Costs(3, keep(m, "k"), "its version is read")
		v.Costs(2, keep(m, "k"))
		v.Costs(1, func() { require.NoError(t, other.Store(ctx, "k", 2)) })
		v.Costs(4, func() { require.ErrorIs(t, other.StoreEphemeral(ctx, "k", 1), zksync.ErrMisuse) }, "bucket, key, a sync, key")
		v.Costs(3, func() { require.ErrorIs(t, other.StoreEphemeral(ctx, "k", 1), zksync.ErrMisuse) })
		v.Costs(8, func() { _, _, err := other.Swap(ctx, "k", 3); require.NoError(t, err) }, "it closes the gate")
		v.Costs(1, func() { require.NoError(t, other.Delete(ctx, "k")) })
	})
}

func TestASessionKeepsABoundedNumberOfKeys(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		m := maps(v, 1)[0]
		long := strings.Repeat("x", 60<<10)
		for i := range 4 {
			require.NoError(t, m.StoreEphemeral(ctx, fmt.Sprint(long, i), i))
		}
		for range 3 {
			err := m.StoreEphemeral(ctx, long+"4", 4)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, "this session keeps 4 keys of the map")
			require.NoError(t, m.StoreEphemeral(ctx, long+"3", 5), "it is one of them")
		}
		require.NoError(t, m.Delete(ctx, long+"0"))
		require.NoError(t, m.StoreEphemeral(ctx, long+"4", 4))
		_, _, err := m.LoadAndDelete(ctx, long+"1")
		require.NoError(t, err)
		require.NoError(t, m.StoreEphemeral(ctx, long+"5", 5))
	})
}

func TestAcceptance180EveryFaultLeavesAnEphemeralKeySound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ss := []*zksync.Session{v.Session(), v.Session()}
		ms := []*zkmap.Map[string, int]{zkmap.New[string, int](ss[0], mapPath), zkmap.New[string, int](ss[1], mapPath)}
		return func(name string) {
			ctx := t.Context()
			require.NoError(t, ms[0].StoreEphemeral(ctx, "k", 1), name)
			require.ErrorIs(t, ms[1].StoreEphemeral(ctx, "k", 2), zksync.ErrMisuse, name)
			got, err := ms[1].Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 2, true, nil })
			require.NoError(t, err, name)
			require.Equal(t, 3, got, name)
			require.NoError(t, ms[0].StoreEphemeral(ctx, "k", 4), name)
			deleted, err := ms[1].CompareAndDelete(ctx, "k", 4)
			require.NoError(t, err, name)
			require.True(t, deleted, name)
			time.Sleep(time.Minute) // a late copy would store it again
			loads(v, ms[0], "k", 0, false)
			require.NoError(t, ms[1].Store(ctx, "k", 5), name)
			require.NoError(t, ms[0].StoreEphemeral(ctx, "k", 6), name)
			assert.NoError(t, ss[0].Close(), name)
			v.Later()
			loads(v, ms[1], "k", 0, false)
		}
	})
}
