package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAnObserverSeesEveryLeaderInOrder(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 3)
		watcher := v.Session()
		seen := make(chan string, 100)
		ctx, stop := context.WithCancel(context.Background())
		var end error
		var watching sync.WaitGroup
		watching.Go(func() {
			for c, err := range candidate(v, watcher, 9).Observe(ctx) {
				switch {
				case errors.Is(err, zksync.ErrNoLeader):
					seen <- "nobody"
				case err != nil:
					end = err
				default:
					seen <- c.ID
				}
			}
		})
		told := func(want ...string) {
			t.Helper()
			v.Quiet()
			var got []string
			for len(seen) > 0 {
				got = append(got, <-seen)
			}
			require.Equal(t, want, got)
		}
		told("nobody")
		l := v.Get(es[0].Campaign)
		told("c0")
		next := proving.Call(context.Background(), es[1].Campaign)
		v.Settled(proving.ElectionPath, 2)
		told()
		v.Server.Disconnect(watcher.ID())
		told()
		require.NoError(t, l.Unlock())
		l = v.Granted(next)
		time.Sleep(time.Second)
		told("c1")
		v.Server.Expire(watcher.ID())
		time.Sleep(time.Second)
		told()
		require.NoError(t, l.Unlock())
		told("nobody")
		stop()
		watching.Wait()
		require.ErrorIs(t, end, context.Canceled)
	})
}

// What else lies in the directory is no leader, and hides none.
func TestAnObserverIsNotMisledByForeignChildren(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.ElectionPath+"/README", "hands off")
		e := elections(v, 1)[0]
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		seen := make(chan string, 10)
		var watching sync.WaitGroup
		watching.Go(func() {
			for c, err := range e.Observe(ctx) {
				if errors.Is(err, zksync.ErrNoLeader) {
					seen <- "nobody"
				} else if err == nil {
					seen <- c.ID
				}
			}
		})
		require.Equal(t, "nobody", <-seen)
		l := v.Get(e.Campaign)
		require.Equal(t, "c0", <-seen)
		for c, err := range e.Observe(ctx) {
			require.NoError(t, err)
			require.Equal(t, "c0", c.ID)
			break // one look is enough
		}
		require.NoError(t, l.Unlock())
		require.Equal(t, "nobody", <-seen)
		stop()
		watching.Wait()
	})
}

// The paths that an observer watches are on the servers, those that it tells are the session's.
func TestAnObserverBelowAChrootSeesTheLeader(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, err := zksync.Connect(t.Context(), "zk:2181/app", zksync.WithDialer(v.Server.DialContext))
		require.NoError(t, err)
		defer s.Close()
		e := zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: "c0"})
		l := v.Get(e.Campaign)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for c, err := range e.Observe(ctx) {
			require.NoError(t, err)
			require.Equal(t, "c0", c.ID)
			require.Equal(t, l.Node(), c.Node)
			break
		}
		require.NoError(t, l.Unlock())
	})
}
