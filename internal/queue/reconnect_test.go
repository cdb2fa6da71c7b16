package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// reconnect has n clients of a kind wait behind a holder, and cuts their connections. It returns what happened then, and how
// many bytes each of them has received on average.
func reconnect(t *testing.T, n int, kind, more string) (lines string, bytes int) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		w.enter("holder", kind, more, false)
		w.pass()
		name := func(i int) string { return fmt.Sprintf("w%03d", i) }
		for i := range n {
			w.enter(name(i), kind, more, false)
			w.pass()
		}
		w.settle()
		w.begin()
		before := int64(0)
		for i := range n {
			before += w.client(name(i)).received.Load()
			w.srv.Disconnect(w.client(name(i)).session())
		}
		w.pass()
		w.pass()
		lines = w.settle()
		for i := range n {
			bytes += int(w.client(name(i)).received.Load())
		}
		bytes = (bytes - int(before)) / n
		w.leave("holder")
		w.pass()
		require.Contains(t, w.settle(), name(0)+": granted")
	})
	return lines, bytes
}

func TestAReconnectOfManyWaitersCostsOneRequestEach(t *testing.T) {
	for _, c := range []struct{ kind, more string }{{"lock", ""}, {"write", ""}, {"permit", "1"}} {
		t.Run(c.kind, func(t *testing.T) {
			_, few := reconnect(t, 10, c.kind, c.more)
			lines, many := reconnect(t, 60, c.kind, c.more)
			require.Zero(t, strings.Count(lines, "> list"), lines)
			require.Equal(t, 60, strings.Count(lines, "> watch"))
			require.LessOrEqual(t, many, few+few/10, "bytes of one")
		})
	}
}
