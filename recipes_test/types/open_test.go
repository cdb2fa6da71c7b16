package types_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// within runs a call that may wait for its turn.
func within(t *testing.T, use func(context.Context, *zksync.Session, string) error, s *zksync.Session) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := use(ctx, s, "/app/it"); err != nil {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	synctest.Wait()
}

func TestAPathThatWasMadeWithoutTheListIsOneWarning(t *testing.T) {
	secret := zksync.WithAuth("digest", []byte("ann:secret"))
	for name, use := range writers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				within(t, use, v.Session())
				for _, want := range []struct {
					acl  []zk.ACL
					mend string
					asks int
				}{
					{zk.AuthACL(zk.PermAll), `setAcl -R ` + v.Chroot + `/app/it auth::cdrwa"`, 1},
					{zk.DigestACL(zk.PermAll, "ann", "secret"), `setAcl -R ` + v.Chroot + `/app/it digest:ann:`, 1},
					{zk.WorldACL(zk.PermAll), "", 0},
				} {
					log := new(proving.Log)
					s := v.Session(log.Option(), secret, zksync.WithACL(want.acl...))
					id := s.ID()
					for range 3 {
						within(t, use, s)
					}
					require.Equal(t, want.asks, v.Server.RequestsOf(id, zktest.GetACL))
					const says = `level=WARN msg="open to everybody, although WithACL is given" path=/app/it ` +
						`reason="it was created without; mend it in zkCli.sh: first addauth with the same credential, then `
					require.Equal(t, want.asks, strings.Count(log.String(), says+want.mend), log.String())
					require.NoError(t, s.Close())
				}
			})
		})
	}
}

func TestAPathThatWasMadeWithTheListIsNoWarning(t *testing.T) {
	for name, use := range writers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				log := new(proving.Log)
				for range 2 {
					s := v.Session(log.Option(), zksync.WithAuth("digest", []byte("ann:secret")), zksync.WithACL(zk.AuthACL(zk.PermAll)...))
					within(t, use, s)
				}
				require.NotContains(t, log.String(), "open to everybody")
			})
		})
	}
}

// What only looks at a node does not own it.
func TestAnOpenNodeThatIsOnlyWatchedIsNoWarning(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		log := new(proving.Log)
		s := v.Session(log.Option(), zksync.WithACL(zk.DigestACL(zk.PermAll, "ann", "secret")...))
		zkwatch.Children(t.Context(), s, "/")(func([]string, error) bool { return false })
		require.Zero(t, v.Server.RequestsOf(s.ID(), zktest.GetACL))
		require.Empty(t, log.String())
	})
}
