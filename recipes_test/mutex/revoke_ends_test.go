package mutex_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// ends are the ways in which the hold of a ticket ends and the process goes on. Each ends what it has begun.
var ends = map[string]func(v *proving.Env, s *zksync.Session) func(){
	"a release": func(v *proving.Env, s *zksync.Session) func() {
		m := zksync.NewMutex(s, proving.LockPath)
		return func() { v.Unlocks(listens(v, v.Lock(m)), nil) }
	},
	"a hand-on": func(v *proving.Env, s *zksync.Session) func() {
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithHandover(0))
		return func() {
			l := listens(v, v.Lock(m))
			next := proving.Begin(context.Background(), m)
			v.Quiet()
			require.NoError(v.T, l.Unlock())
			v.Unlocks(v.Granted(next), nil)
		}
	},
	"a wait for a condition": func(v *proving.Env, s *zksync.Session) func() {
		m := zksync.NewMutex(s, proving.LockPath)
		c := zkcond.New(m, proving.CondPath)
		return func() {
			l := listens(v, v.Lock(m))
			waits := proving.Call(context.Background(), func(ctx context.Context) (*zksync.Lease, error) { return c.WaitContext(ctx, l) })
			v.Queued(proving.CondPath, 1)
			other := v.Lock(m)
			require.NoError(v.T, c.BroadcastContext(context.Background(), other))
			require.NoError(v.T, other.Unlock())
			v.Unlocks(v.Granted(waits), nil)
		}
	},
	"a downgrade": func(v *proving.Env, s *zksync.Session) func() {
		m := zkrwmutex.New(s, proving.LockPath)
		return func() {
			read, err := m.Downgrade(context.Background(), listens(v, v.Get(m.LockContext)))
			require.NoError(v.T, err)
			require.NoError(v.T, read.Unlock())
		}
	},
}

// asked is how many nodes of requests there are.
func asked(v *proving.Env) (n int) {
	for _, name := range v.Children(proving.LockPath) {
		if strings.HasPrefix(name, "revoke-") {
			n++
		}
	}
	return n
}

// listens has the holder of l listen for a request to give up.
func listens(v *proving.Env, l *zksync.Lease) *zksync.Lease {
	l.Revoked()
	v.Quiet()
	require.Equal(v.T, 1, asked(v))
	return l
}

func TestNothingOfAHoldThatListenedIsLeftHoweverItEnds(t *testing.T) {
	for name, begin := range ends {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				v.Put(proving.LockPath, "")
				round := begin(v, v.Session())
				round()
				v.Later()
				goroutines, watches := v.Goroutines(), v.Watches()
				for range 20 {
					round()
				}
				v.Later()
				require.Zero(t, asked(v), "the nodes of requests")
				require.Empty(t, v.Children(proving.LockPath))
				v.GoroutinesBack(goroutines)
				require.Equal(t, watches, v.Watches())
			})
		})
	}
}

// While it holds it needs no goroutine: the event of the watch tells.
func TestAHoldThatListensKeepsNoGoroutine(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		v.Quiet()
		before := v.Goroutines()
		var held []*zksync.Lease
		for _, path := range []string{"/r/a", "/r/b", "/r/c", "/r/d"} {
			l := v.Lock(zksync.NewMutex(s, path))
			l.Revoked()
			held = append(held, l)
		}
		v.Quiet()
		v.GoroutinesBack(before)
		for _, l := range held {
			require.NoError(t, l.Unlock())
		}
	})
}

// Nobody holds it, so there is nobody to ask: the place is given up, and the next hold has not been asked.
func TestALingeringPlaceThatIsAskedForIsGivenUp(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour))
		for range 2 {
			require.NoError(t, listens(v, v.Lock(m)).Unlock())
			require.NoError(t, zksync.Revoke(context.Background(), other, contender(v, other)))
			v.Queued(proving.LockPath, 0)
		}
		l := listens(v, v.Lock(m))
		select {
		case <-l.Revoked():
			require.Fail(t, "nobody has asked for this hold")
		default:
		}
		require.NoError(t, l.Unlock())
	})
}

// A process that ends right after an Unlock leaves no place behind, whoever of it waits.
func TestAnUnlockThatHandsOnWaitsForTheServers(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath, zksync.WithHandover(0))
		l := v.Lock(m)
		next := proving.Begin(context.Background(), m)
		v.Quiet()
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		own := l.Node()
		require.NoError(t, l.Unlock())
		v.Took(start, 50*time.Millisecond, "the request and its answer")
		require.False(t, v.Exists(own))
		v.Granted(next)

		// Without an answer it waits no longer than every Unlock does, and not at all where the lock says so.
		heal := v.Server.Partition(s.ID())
		waits := proving.Begin(context.Background(), m)
		start = time.Now()
		require.NoError(t, m.Lease().Unlock())
		v.Took(start, time.Second, "an Unlock without an answer")
		heal()
		v.Unlocks(v.Granted(waits), nil)
	})
}
