package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAResetOutlivesLostRequestsAndSessions(t *testing.T) {
	for name, fate := range lostWrites {
		for _, outage := range []time.Duration{0, time.Minute} {
			t.Run(name+" "+outage.String(), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					os := onces(v, 2)
					run := func(o *zkonce.Once, s string) string {
						value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte(s), nil })
						require.NoError(t, err)
						return string(value)
					}
					require.Equal(t, "1", run(os[0], "1"))
					require.Equal(t, "1", run(os[1], "2"))
					lost := v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
						if outage > 0 && q.Op == zktest.Multi && q.Paths[len(q.Paths)-1] == onceResult {
							time.AfterFunc(outage, v.Server.Refuse())
						}
						return zktest.Verdict{}
					})
					v.Server.Intercept(fate.of(zktest.On(zktest.Delete, onceResult).Times(1)))
					require.NoError(t, os[0].Reset(context.Background()))
					lost()
					v.Later()
					require.Equal(t, "3", run(os[1], "3"))
					v.Queued(proving.OncePath+"/lock", 0)
				})
			})
		}
	}
}

func TestADeadlineEndsAReset(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		o := onces(v, 1)[0]
		o.Do(func() {})
		v.Server.Intercept(zktest.On(zktest.Delete, onceResult).LoseRequest())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, o.Reset(ctx), context.DeadlineExceeded)
		v.Within(start, time.Second+100*time.Millisecond, "Reset")
	})
}

func TestADeadlineEndsTheWritingOfAReset(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		outOfReach(v, s, 5*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		start := time.Now()
		err := zkonce.New(s, proving.OncePath).Reset(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, zksync.Ambiguous(err))
		v.Within(start, 2100*time.Millisecond, "Reset")
		v.Later()
		require.Empty(t, v.Children(proving.OncePath+"/lock"))
	})
}

// The result is removed, the answer is lost, and the next attempt finds no connection until the context ends.
func TestAResetThatMayHaveRemovedTheResultIsAmbiguous(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		o := onces(v, 1)[0]
		o.Do(func() {})
		v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && q.Paths[len(q.Paths)-1] == onceResult {
				v.Server.Refuse()
				return zktest.Verdict{Fate: zktest.LoseReply}
			}
			return zktest.Verdict{}
		})
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // after the loss
		defer cancel()
		err := o.Reset(ctx)
		require.False(t, v.Exists(onceResult))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, zksync.Ambiguous(err), err)
		require.ErrorContains(t, err, "zkonce: reset "+proving.OncePath+": ")
	})
}
