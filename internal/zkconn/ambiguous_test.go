package zkconn

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// On a connection that is never lost nothing looks for them, so nothing else forgets them.
func TestNodesThatCannotBeMadeAnyMoreAreForgottenWithoutAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a ambiguousCreates
		for i := range 10_000 {
			a.add(ambiguousCreate{dir: "/a", prefix: strconv.Itoa(i)}, time.Now().Add(time.Second))
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, len(a.until), 65)
		require.Len(t, a.inDirs()["/a"], 10)
	})
}
