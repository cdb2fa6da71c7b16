package zkshard_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// changes reports whether a request changes a record.
func changes(q *zktest.Request) bool {
	return q.Path == zkshard.Path+"/zkshard" && (q.Op == zktest.SetData || q.Op == zktest.Multi && q.Ops[0] == zktest.SetData)
}

// race starts two processes at once. One is slow to change the first ensemble, the other the second.
func (w *world) race(first, second config) (of [2]*zkshard.Shards, failed [2]error) {
	for i, host := range []string{"a", "b", "c"} {
		var mu sync.Mutex
		var seen []int64
		w.srvs[host].InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(seen, q.Session) {
				seen = append(seen, q.Session)
			}
			if !changes(q) {
				return zktest.Verdict{}
			}
			if slices.Index(seen, q.Session) == i%2 {
				return zktest.Verdict{Delay: time.Second}
			}
			return zktest.Verdict{Delay: 10 * time.Millisecond} // so both have read everything before
		})
	}
	var all sync.WaitGroup
	for i, c := range []config{first, second} {
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
			defer cancel()
			of[i], failed[i] = w.try(ctx, c.to, c.from)
		})
	}
	all.Wait()
	return of, failed
}

// Of two moves that begin at once, one goes on, whatever the names of the ensembles.
func TestAcceptance218OfTwoMovesThatBeginAtOnceOneGoesOn(t *testing.T) {
	for range 4 {
		play(t, 3, func(t *testing.T, w *world) {
			old := w.connect("a b", "")
			of, failed := w.race(config{"b c", "a b"}, config{"a c", "a b"})
			won := slices.IndexFunc(failed[:], func(err error) bool { return err == nil })
			require.GreaterOrEqual(t, won, 0, "%v", failed)
			require.ErrorIs(t, failed[1-won], zksync.ErrMisuse)
			require.ErrorContains(t, failed[1-won], "is under way")
			require.NoError(t, old.Close())
			w.connect([]string{"b c", "a c"}[won], "")
			require.NoError(t, of[won].Close())
		})
	}
}

// Of two first lists that begin at once, one is in force.
func TestAcceptance218OfTwoFirstListsThatBeginAtOnceOneIsInForce(t *testing.T) {
	for range 4 {
		play(t, 3, func(t *testing.T, w *world) {
			lists := [2]string{"a b", "b a c"}
			of, failed := w.race(config{lists[0], ""}, config{lists[1], ""})
			won := slices.IndexFunc(failed[:], func(err error) bool { return err == nil })
			require.GreaterOrEqual(t, won, 0, "%v", failed)
			require.ErrorIs(t, failed[1-won], zksync.ErrMisuse)
			w.connect(lists[won], "")
			require.NoError(t, of[won].Close())
		})
	}
}

// A move to an ensemble that has another list does not begin, so the old list can still move elsewhere.
func TestAcceptance218AMoveToAnEnsembleOfAnotherListDoesNotBegin(t *testing.T) {
	for range 4 {
		play(t, 4, func(t *testing.T, w *world) {
			old := w.connect("a b", "")
			w.connect("c", "")
			require.ErrorContains(t, w.refused("a b c", "a b"), `the recorded one is ["c"]`)
			moving := w.connect("a b d", "a b")
			require.NoError(t, old.Close())
			w.connect("a b d", "")
			require.NoError(t, moving.Close())
		})
	}
}

// The first process has died before it had claimed all ensembles.
func TestAcceptance218AFirstListThatWasNotFinished(t *testing.T) {
	play(t, 4, func(t *testing.T, w *world) {
		var n atomic.Int32
		for _, srv := range w.srvs {
			srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
				if changes(q) && n.Add(1) == 2 {
					return zktest.Verdict{Delay: 30 * time.Second}
				}
				return zktest.Verdict{}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := w.try(ctx, "a b", "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "it waits for the others")
		failed := []error{nil, nil}
		for i, other := range []string{"a c", "b d"} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			s, err := w.try(ctx, other, "")
			if failed[i] = err; err == nil {
				require.NoError(t, s.Close())
			}
		}
		claimed := slices.IndexFunc(failed, func(err error) bool { return err != nil })
		require.NotEqual(t, -1, claimed)
		require.ErrorIs(t, failed[claimed], zksync.ErrMisuse)
		require.ErrorContains(t, failed[claimed], fmt.Sprintf(`and did not finish: start one more with that list; or, if that will never be done, remove /shards on "%c"`, 'a'+claimed))
	})
}

// An ensemble that was part of a list with a longer history says what to do, before the move begins.
func TestAcceptance218AnEnsembleWithALongerHistory(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		require.NoError(t, w.connect("c", "").Close())
		require.NoError(t, w.connect("b", "c").Close())
		old := w.connect("a", "")
		require.ErrorContains(t, w.refused("a c", "a"), `"c" has left the list ["c"] in generation 2, which is greater than that of ["a"], 1: remove /shards on "c"`)
		st, err := old.State(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, "open", st[0].Summary.State)
		require.ErrorContains(t, w.refused("c", ""), `the list ["c"] was replaced by ["b"]`)
		w.srvs["d"] = zktest.Run(t)
		require.ErrorContains(t, w.refused("c d", ""), `"c" was left out when ["c"] became ["b"], so it can join the list ["c" "d"] only with WithMoving; or remove /shards there, if that move is over`)
	})
}
