package mutex_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A server that is behind says "no node" of the own node, once. (Any error -101 that is not true will do.) The lease may be lost
// for it, but then the node must go: its session lives, and nobody else could be granted.
func TestANodeThatIsSaidToBeGoneIsRemovedAllTheSame(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		v.Server.Intercept(zktest.On(zktest.GetData, proving.LockPath+"/*").Nth(1).Error(zktest.CodeNoNode))
		<-l.Done() // asks for the own node to be watched
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		v.Quiet()
		require.Empty(t, v.Children(proving.LockPath), "held by nobody, for as long as the session lives")
	})
}
