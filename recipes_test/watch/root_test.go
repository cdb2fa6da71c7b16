package watch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

func TestTheRootCanBeWatchedWithAChrootAndWithout(t *testing.T) {
	for chroot, top := range map[string]string{"": "", "/app": "/app"} {
		for _, version := range []string{"3.8", "3.5"} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithCancel(t.Context())
				v.Put(top+"/a", "1")
				s, err := zksync.Connect(ctx, "zk1"+chroot, zksync.WithDialer(v.Server.DialContext))
				require.NoError(t, err)
				data, names := follow(zkwatch.Data(ctx, s, "/")), follow(zkwatch.Children(ctx, s, "/"))
				tree := zkwatch.NewTree(s, "/")
				require.NoError(t, tree.Start(ctx))
				changes := follow(tree.Changes(ctx))
				v.Quiet()
				require.Equal(t, "/", data.last().Path)
				require.Contains(t, names.last(), "a")
				require.Contains(t, tree.Children("/"), "a")
				_, there := tree.Get("/")
				require.True(t, there)
				v.Put(top+"/b/c", "2")
				v.Later()
				require.Contains(t, names.last(), "b")
				require.Equal(t, []string{"c"}, tree.Children("/b"))
				c, _ := tree.Get("/b/c")
				require.Equal(t, "/b/c", c.Path)
				require.Equal(t, "2", string(c.Data))
				require.Equal(t, "/b/c", changes.last().Node.Path)
				require.Equal(t, "/", changes.told()[0].Node.Path)
				v.Server.Set(map[string]string{"": "/"}[top]+top, []byte("new"))
				v.Quiet()
				require.Equal(t, "new", string(data.last().Data))
				v.Server.Expire(s.ID())
				v.Server.DeleteAll(top + "/b")
				v.Later()
				require.NotContains(t, tree.Children("/"), "b")
				cancel()
				tree.Close()
				require.NoError(t, s.Close())
			}, zktest.WithVersion(version))
		}
	}
}

func TestWhatTheRootIsNotForIsSaidWithoutCallingItALock(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		_, _, err := zkatomic.NewValue[string](s, "/").Load(t.Context())
		_, locked := zksync.NewMutex(s, "/").LockContext(t.Context())
		for _, err := range []error{
			err, zkwatch.Keep(s, "/", nil).SetData(t.Context(), nil), locked,
		} {
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, `is the root: give a path below it`)
			require.NotContains(t, err.Error(), "cannot be a lock")
		}
	})
}
