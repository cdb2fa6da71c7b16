package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// An Unlock whose context ends while nobody knows what became of its request is carried out all the same, in the next session if need be.
func TestAnUnlockWhoseOutcomeIsUnknownIsSentOn(t *testing.T) {
	for _, fate := range []zktest.Fate{zktest.LoseRequest, zktest.LoseReply} {
		for _, away := range []time.Duration{3 * time.Second, time.Minute} {
			t.Run(fmt.Sprintf("fate=%v,away=%v", fate, away), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					s, other := v.Session(), mutexes(v, 2)
					h := locks(v, zkdurable.NewMutex(s, path), "a")
					waiter := queued(v, other[0], "b", 0)
					var heal func()
					v.Server.InterceptFunc(func(q *zktest.Request) (d zktest.Verdict) {
						if q.Session == s.ID() && q.Op == zktest.Multi && heal == nil {
							d.Fate = fate
							heal = v.Server.Refuse()
						}
						return d
					})
					short, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					err := h.Unlock(short)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.True(t, zksync.Ambiguous(err))
					time.Sleep(away)
					heal()
					next := granted(v, waiter)
					v.Awaits(h.Done(), "Done")
					require.ErrorIs(t, h.Err(), zksync.ErrReleased)
					require.NoError(t, h.Unlock(ctx), "it tells what became of the first one")
					require.ErrorIs(t, h.Unlock(ctx), zksync.ErrReleased)
					require.NoError(t, next.Unlock(ctx))
					v.Later()
					v.NothingLeft(base, "queue", "writers")
				})
			})
		}
	}
}

// The refusal of a Resume names who has the hold open.
func TestAResumeThatIsRefusedNamesWhoHasTheHoldOpen(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := mutexes(v, 2)
		h := locks(v, ms[0], "a")
		_, err := ms[0].Resume(ctx, "a")
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.ErrorContains(t, err, "this session has the hold of \"a\" open")
		_, err = ms[1].Resume(ctx, "a")
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.ErrorContains(t, err, "process 0 has the hold of \"a\" open")
		require.NoError(t, h.Unlock(ctx))
	})
}
