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

const onceResult = proving.OncePath + "/result"

// lostWrites are what becomes of a write of which the client hears nothing.
var lostWrites = map[string]struct {
	of      func(*zktest.Rule) *zktest.Rule
	applied bool
}{
	"applied":     {(*zktest.Rule).LoseReply, true},
	"not applied": {(*zktest.Rule).LoseRequest, false},
}

// The network goes away while the result is written, for longer than the session lives.
func TestTheNextSessionFindsOutWhatBecameOfAResult(t *testing.T) {
	for name, fate := range lostWrites {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				o := zkonce.New(v.Session(), proving.OncePath)
				other := onces(v, 1)[0]
				v.Server.Intercept(fate.of(zktest.On(zktest.Create, onceResult).Times(1)))
				value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
					time.AfterFunc(time.Minute, v.Server.Refuse())
					return []byte("first"), nil
				})
				if fate.applied {
					require.NoError(t, err, "everybody else gets it")
					require.Equal(t, "first", string(value))
				} else {
					require.ErrorIs(t, err, zksync.ErrLost)
					require.False(t, zksync.Ambiguous(err), "it has been found out")
				}
				runs := 0
				value, err = other.DoContext(context.Background(), func(context.Context) ([]byte, error) {
					runs++
					return []byte("second"), nil
				})
				require.NoError(t, err)
				require.Equal(t, !fate.applied, runs == 1)
				require.Equal(t, !fate.applied, string(value) == "second")
			})
		})
	}
}

// As long as nobody can be asked, the caller's deadline counts, and the error says both.
func TestADeadlineEndsTheSearchForAResult(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		o := zkonce.New(v.Session(), proving.OncePath)
		for _, limit := range []time.Duration{5 * time.Second, 30 * time.Second} { // before the loss, and after
			v.Server.Intercept(zktest.On(zktest.Create, onceResult).Times(1).LoseReply())
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			start := time.Now()
			allow := func() {}
			_, err := o.DoContext(ctx, func(context.Context) ([]byte, error) {
				allow = v.Server.Refuse()
				return []byte("x"), nil
			})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, zksync.Ambiguous(err))
			v.Within(start, limit+100*time.Millisecond, "DoContext")
			allow()
			require.NoError(t, o.Reset(context.Background()))
		}
	})
}

// The result is kept. The next server lags and does not show it, and then nobody can be asked until the lease is lost.
func TestAResultThatMayBeKeptWhenTheLeaseIsLostIsAmbiguous(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
		lost := e.Intercept(zktest.On(zktest.Create, onceResult).Times(1).LoseReply())
		e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if lost.Fired() > 0 && q.Op == zktest.GetData && q.Paths[0] == onceResult {
				time.AfterFunc(time.Millisecond, func() { e.Server(1).Refuse(); e.Disconnect(s.ID()) })
			}
			return zktest.Verdict{}
		})
		ctx, cancel := context.WithTimeout(context.Background(), 9*time.Second)
		defer cancel()
		_, err := zkonce.New(s, proving.OncePath).DoContext(ctx, func(context.Context) ([]byte, error) {
			e.Lag(1)
			e.Server(0).Refuse()
			e.Server(2).Refuse()
			return []byte("x"), nil
		})
		_, kept := e.Server(2).Node(onceResult)
		require.True(t, kept)
		require.ErrorIs(t, err, zksync.ErrLost)
		require.True(t, zksync.Ambiguous(err), err)
	})
}

// It was written, and then another program deletes the lock's node: that is no reason to say it was not.
func TestAResultThatWasKeptIsReturnedThoughTheLeaseIsLostAfterwards(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		o := zkonce.New(v.Session(), proving.OncePath)
		v.Server.OnCommit(func(txn zktest.Txn) {
			for _, c := range txn.Changes {
				if c.Path == onceResult && c.Kind == zktest.Created {
					go func() {
						for _, n := range v.Server.Children(proving.OncePath + "/lock") {
							v.Server.Delete(proving.OncePath + "/lock/" + n)
						}
					}()
				}
			}
		})
		v.Server.Intercept(zktest.On(zktest.Create, onceResult).Times(1).LoseReply())
		again := v.Server.Intercept(zktest.On(zktest.Connect, "**").Delay(time.Second)) // by then the node is gone
		value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte("x"), nil })
		require.NoError(t, err)
		require.Equal(t, "x", string(value))
		require.Equal(t, 1, again.Fired())
	})
}

// Whoever closes the session while the function runs, or while its result is written, is told so.
func TestACloseWhileTheFunctionRunsIsTold(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		o := zkonce.New(s, proving.OncePath)
		_, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
			require.NoError(t, s.Close())
			return []byte("x"), nil
		})
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

// The function has done its work when it hears that the caller gave up. Nobody does it again.
func TestAResultThatComesRightAfterTheDeadlineIsKept(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Server.Delay(s.ID(), 10*time.Millisecond, 10*time.Millisecond)
		o := zkonce.New(s, proving.OncePath)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		value, err := o.DoContext(ctx, func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return []byte("x"), nil })
		require.NoError(t, err)
		require.Equal(t, "x", string(value))
		v.Within(start, time.Second+100*time.Millisecond, "DoContext")
		value, err = zkonce.New(v.Session(), proving.OncePath).DoContext(context.Background(), func(context.Context) ([]byte, error) {
			require.Fail(t, "it runs again")
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, "x", string(value))
	})
}

// The caller gives up while the servers are away, right after the function has run. The session writes the result
// when they are back.
func TestAResultIsWrittenAfterItsCallerHasGivenUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		o := zkonce.New(v.Session(), proving.OncePath)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := o.DoContext(ctx, func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			v.Server.Stop()
			time.AfterFunc(2*time.Second, v.Server.Restart)
			return []byte("x"), nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, zksync.Ambiguous(err))
		v.Within(start, time.Second+100*time.Millisecond, "DoContext")
		value, err := zkonce.New(v.Session(), proving.OncePath).DoContext(context.Background(), func(context.Context) ([]byte, error) {
			require.Fail(t, "it runs again")
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, "x", string(value))
		require.Empty(t, v.Children(proving.OncePath+"/lock"))
	})
}

// The servers are out of reach for a while, and the lease lives on.
func TestADeadlineEndsTheWritingOfAResult(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		outOfReach(v, s, 5*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_, err := zkonce.New(s, proving.OncePath).DoContext(ctx, func(context.Context) ([]byte, error) { return []byte("x"), nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, zksync.Ambiguous(err))
		v.Within(start, 2100*time.Millisecond, "DoContext")
		v.Later()
		require.Empty(t, v.Children(proving.OncePath+"/lock"))
	})
}

// outOfReach takes the network away from a session for d whenever it asks for something to be done to the result.
func outOfReach(v *proving.Env, s *zksync.Session, d time.Duration) {
	v.T.Helper()
	v.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if q.Op == zktest.Multi && q.Paths[len(q.Paths)-1] == onceResult {
			time.AfterFunc(d, v.Server.Partition(s.ID()))
		}
		return zktest.Verdict{}
	})
}
