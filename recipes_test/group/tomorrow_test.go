package zkgroup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// Members with the items of the next batch come while a member works on the last item of the one before: nothing moves, nothing runs twice,
// and either is done for those who come later.
func TestTheNextBatchBeginsWhileTheLastOneEnds(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		c, all := newTally(), items(9)
		last, next := all[:6], all[4:] // two are in both
		took := func(item string) time.Duration {
			if item == "item/3" || item == "item/5" {
				return 10 * time.Second
			}
			return time.Second
		}
		begun := time.Now()
		a := begins(v, v.Session(), "a", last, c.run("a", took), until)
		time.Sleep(3 * time.Second)
		b := begins(v, v.Session(), "b", next, c.run("b", took), until)
		v.Quiet()
		time.Sleep(2 * time.Second)
		require.Equal(t, 7, c.total())
		a.stop(t) // it is started again
		a.begin(v, last, c.run("a", took), until)
		a.ended(t)
		b.ended(t)
		v.Within(begun, 17*time.Second, "the end of both")
		for item, n := range c.counts() {
			require.Equal(t, 1, n, item)
		}
		require.Zero(t, does(v, "c", last))
		require.Zero(t, does(v, "c", next))
		require.Equal(t, 3, does(v, "c", all[:3]), "others are a new round")
		require.Equal(t, 6, does(v, "c", last))
	})
}

// The session is closed, or a member leaves, in the middle: Assign says so, and the next one goes on.
func TestAnAssignUntilDoneWhoseSessionIsClosed(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		c, all, s := newTally(), items(4), v.Session()
		a := begins(v, s, "a", all, c.run("a", func(item string) time.Duration {
			return map[bool]time.Duration{true: time.Second, false: time.Minute}[item == "item/0"]
		}), until)
		time.Sleep(2 * time.Second)
		second := make(chan error, 1)
		go func() { second <- a.g.Assign(t.Context(), a.m, all, untilEnd, until) }()
		require.ErrorIs(t, <-second, zksync.ErrMisuse)
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-a.ends, zksync.ErrClosed)
		require.Equal(t, 3, does(v, "b", all))

		s = v.Session()
		other := append(items(4), "other")
		a = begins(v, s, "a", other, untilEnd, until)
		v.Quiet()
		require.NoError(t, a.m.Leave(t.Context()))
		require.ErrorIs(t, <-a.ends, zksync.ErrReleased)
		require.Equal(t, 5, does(v, "b", other))
	})
}
