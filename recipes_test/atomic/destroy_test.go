package atomic_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// After a Destroy versions begin again. A version that an object has shown before is none of the next value.
func TestAVersionOfADestroyedValueIsNotOneOfTheNext(t *testing.T) {
	type ask func(ctx context.Context, t *testing.T, x *zkatomic.Value[string]) int64
	load := func(ctx context.Context, t *testing.T, x *zkatomic.Value[string]) int64 {
		s, err := x.LoadSnapshot(ctx)
		require.NoError(t, err)
		return s.Version
	}
	watch := func(ctx context.Context, t *testing.T, x *zkatomic.Value[string]) (version int64) {
		for s, err := range x.Watch(ctx) {
			require.NoError(t, err)
			version = s.Version
			break
		}
		return version
	}
	none := func(context.Context, *testing.T, *zkatomic.Value[string]) int64 { return 2 } // from elsewhere, about what the object knows
	for name, shows := range map[string]ask{"of LoadSnapshot": load, "of Watch": watch, "of a program that remembers it": none} {
		for between, meanwhile := range map[string]func(ctx context.Context, t *testing.T, x *zkatomic.Value[string]){
			"nothing": func(context.Context, *testing.T, *zkatomic.Value[string]) {},
			"a Load": func(ctx context.Context, t *testing.T, x *zkatomic.Value[string]) {
				_, _, err := x.Load(ctx)
				require.NoError(t, err)
			},
			"own changes": func(ctx context.Context, t *testing.T, x *zkatomic.Value[string]) { change(ctx, t, x, 2) },
		} {
			t.Run(name+", "+between, func(t *testing.T) {
				proving.Each(t, func(t *testing.T, v *proving.Env) {
					ctx := t.Context()
					x, other := zkatomic.NewValue[string](v.Session(), path), zkatomic.NewValue[string](v.Session(), path)
					change(ctx, t, x, 2)
					version := shows(ctx, t, x)
					require.Equal(t, int64(2), version)
					require.NoError(t, other.Destroy(ctx))
					if between != "own changes" {
						change(ctx, t, other, 2)
					}
					meanwhile(ctx, t, x)
					stored, err := x.StoreIf(ctx, version, "late")
					if name == "of a program that remembers it" && between != "nothing" {
						require.NoError(t, err)
						require.True(t, stored, "it is taken for one of the present value")
						return
					}
					require.False(t, stored)
					if err != nil {
						require.ErrorIs(t, err, zksync.ErrBroken)
					}
					stored, err = x.StoreIf(ctx, load(ctx, t, x), "asked")
					require.NoError(t, err)
					require.True(t, stored)
				})
			})
		}
	}
}

func change(ctx context.Context, t *testing.T, x *zkatomic.Value[string], times int) {
	for range times {
		_, err := x.Update(ctx, func(old string, _ bool) (string, error) { return old + "x", nil })
		require.NoError(t, err)
	}
}

// The object knows from the answer alone which value it has written, so it asks if there is none.
func TestALostAnswerDoesNotMixUpValues(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		s := v.Session()
		x, other := zkatomic.NewValue[string](s, path), zkatomic.NewValue[string](v.Session(), path)
		change(ctx, t, other, 1)
		shown, err := x.LoadSnapshot(ctx)
		require.NoError(t, err)
		require.NoError(t, other.Destroy(ctx))
		v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Nth(3).LoseReply().Maybe())
		change(ctx, t, x, 1)
		stored, err := x.StoreIf(ctx, shown.Version, "late")
		require.NoError(t, err)
		require.False(t, stored)
	})
}
