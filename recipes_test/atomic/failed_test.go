package atomic_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// doubtful is an error of a function that has made a call of its own, whose outcome is not known.
type doubtful struct{}

func (doubtful) Error() string   { return "perhaps paid" }
func (doubtful) Ambiguous() bool { return true }

// updates are those of a value and of a key of a map, with a function that fails.
func updates(s *zksync.Session) map[string]func(ctx context.Context, f func() error) error {
	x, m := zkatomic.NewValue[int](s, path+"/value"), zkmap.New[string, int](s, path+"/map")
	return map[string]func(ctx context.Context, f func() error) error{
		"value": func(ctx context.Context, f func() error) error {
			_, err := x.Update(ctx, func(old int, _ bool) (int, error) { return old + 1, f() })
			return err
		},
		"map": func(ctx context.Context, f func() error) error {
			_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, f() })
			return err
		},
	}
}

func TestAnUpdateWhoseFunctionFailsIsNotAmbiguous(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for name, update := range updates(v.Session()) {
			err := update(t.Context(), func() error { return doubtful{} })
			require.ErrorIs(t, err, doubtful{}, name)
			require.ErrorContains(t, err, "perhaps paid", name)
			require.False(t, zksync.Ambiguous(err), "%s: nothing was written: %v", name, err)
			require.ErrorIs(t, update(t.Context(), func() error { return proving.ErrTest }), proving.ErrTest, name)
		}
	})
}

func TestTheErrorOfAFunctionIsToldThoughTheContextEndedMeanwhile(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for name, update := range updates(v.Session()) {
			ctx, cancel := context.WithCancel(t.Context())
			err := update(ctx, func() error { cancel(); synctest.Wait(); return proving.ErrTest })
			require.ErrorIs(t, err, proving.ErrTest, name)
			require.False(t, zksync.Ambiguous(err), "%s: %v", name, err)
		}
	})
}
