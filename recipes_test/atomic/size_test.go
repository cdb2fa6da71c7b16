package atomic_test

import (
	"context"
	"sort"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
)

// What is accepted fits into each request that may become necessary, also into that of a process that has closed the gate.
func TestTheGreatestValueFitsIntoTheRequestThatOpensTheGate(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		acl := zk.WorldACL(zk.PermAll)
		for range 20 {
			acl = append(acl, zk.ACL{Perms: zk.PermRead, Scheme: "ip", ID: "10.20.30.40"})
		}
		long := path + "/" + strings.Repeat("n", 200)
		value := func() *zkatomic.Value[[]byte] {
			return zkatomic.NewValue[[]byte](v.Session(), long, zksync.WithCodec(zksync.Raw), zksync.WithACL(acl...))
		}
		x, y := value(), value()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		most := sort.Search(1<<20, func(n int) bool {
			return !strings.Contains(x.Store(ended, make([]byte, n)).Error(), context.Canceled.Error())
		}) - 1
		require.Greater(t, most, 1<<20-10_000)
		calls := 0
		_, err := x.Update(t.Context(), func([]byte, bool) ([]byte, error) {
			if calls++; calls <= 3 { // twice outside the queue, and once in its turn
				require.NoError(t, y.Store(t.Context(), []byte{byte(calls)}))
			} else {
				require.False(t, v.Exists(long+"/zkatomic.Value/open"))
			}
			return make([]byte, most), nil
		})
		require.NoError(t, err)
		require.Equal(t, 4, calls)
		require.True(t, v.Exists(long+"/zkatomic.Value/open"))
	})
}
