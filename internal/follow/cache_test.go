package follow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestACacheHoldsTheTreeAndTellsItsChanges(t *testing.T) {
	onEachGround(t, func(t *testing.T, v *proving.Env, s *zksync.Session) {
		v.Server.Load(map[string]string{"/f/a": "1", "/f/b": "2"})
		c := follow.NewCache(access(s), "/f", follow.Part{Depth: follow.Unbounded})
		require.NoError(t, c.Start(t.Context()))
		n, ok := c.Get("/f/a")
		require.True(t, ok)
		require.Equal(t, "1", string(n.Data))
		require.Equal(t, []string{"a", "b"}, c.Children("/f"))
		require.Zero(t, c.Age())
		all := proving.Tells(c.Changes(t.Context()), func(ev follow.Event) string { return strings.Repeat("x", int(ev.Kind)) + ev.Path })
		require.Equal(t, []string{"x/f", "x/f/a", "x/f/b", "xxxx/f"}, all.Take(v))
		v.Server.Delete("/f/a")
		require.Equal(t, []string{"xxx/f/a"}, all.Take(v))
		_, ok = c.Get("/f/a")
		require.False(t, ok)
		v.Server.Expire(s.ID())
		v.Server.Set("/f/b", []byte("3"))
		time.Sleep(time.Minute)
		require.Contains(t, all.Take(v), "xx/f/b")
		n, _ = c.Get("/f/b")
		require.Equal(t, "3", string(n.Data))
		require.Zero(t, c.Age())
		c.Close()
		<-all.Done
		require.Empty(t, all.Take(v))
		require.Error(t, c.Start(t.Context()))
	})
}
