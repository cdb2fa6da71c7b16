package queue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The first writer watches readers, at most 32. It lists again when all of these have left, and when the scout has, which
// is the last one ahead of them. The second writer lists when its scout leaves, the last reader. Nobody else asks anything.
func TestWritersAskLittleWhileManyReadersLeave(t *testing.T) {
	inOrder := func(n int) (all []int) {
		for i := range n {
			all = append(all, i)
		}
		return all
	}
	backwards := func(n int) []int {
		all := inOrder(n)
		slices.Reverse(all)
		return all
	}
	for _, c := range []struct {
		readers, writers int
		order            func(int) []int
		requests         int // besides the releases
	}{
		{16, 1, inOrder, 0},
		{16, 1, backwards, 0},
		{16, 2, inOrder, 0},
		{40, 1, inOrder, 1},
		{40, 1, backwards, 1},
		{40, 2, inOrder, 1},
		{100, 1, inOrder, 1},
		{100, 1, backwards, 3},
		{100, 1, rand.New(rand.NewPCG(1, 2)).Perm, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			enter := func(n int, kind string) {
				for i := range n {
					w.enter(fmt.Sprint(kind, i), kind, "", false)
					time.Sleep(10 * time.Millisecond)
				}
			}
			enter(c.readers, "read")
			enter(c.writers, "write")
			time.Sleep(time.Second) // readers watch their own nodes, too
			before := w.srv.Requests()
			for _, i := range c.order(c.readers) {
				require.Nil(t, w.client("write0").ticket)
				w.leave(fmt.Sprint("read", i))
				w.pass()
			}
			require.NotNil(t, w.client("write0").ticket)
			require.Equal(t, c.requests, w.srv.Requests()-before-c.readers, "%d readers, %d writers", c.readers, c.writers)
			for i := range c.writers {
				w.leave(fmt.Sprint("write", i))
				w.pass()
			}
			w.close()
		})
	}
}
