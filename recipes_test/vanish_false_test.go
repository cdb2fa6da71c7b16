package recipes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A server that is behind says "no node" of the own node, once. (Any error -101 that is not true will do.) The lease may be lost
// for it, but then the node must go: its session lives, and nobody else could be granted.
func TestANodeThatIsSaidToBeGoneIsRemovedAllTheSame(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		l := v.lock(zksync.NewMutex(s, lockPath))
		v.srv.Intercept(zktest.On(zktest.GetData, lockPath+"/*").Nth(1).Error(zktest.CodeNoNode))
		<-l.Done() // asks for the own node to be watched
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		v.quiet()
		require.Empty(t, v.children(lockPath), "held by nobody, for as long as the session lives")
	})
}
