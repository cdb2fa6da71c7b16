package mutex_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestContendersShowWhoHoldsAndWhoWaits(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		before := time.Now().Add(-time.Second)
		ss := []*zksync.Session{v.Session(zksync.WithName("billing")), v.Session(zksync.WithName("billing")), v.Session()}
		holder := v.Lock(zksync.NewMutex(ss[0], proving.LockPath))
		named := v.Line(zksync.NewMutex(ss[1], proving.LockPath, zksync.WithName("nightly")))[0]
		nameless := v.Line(zksync.NewMutex(ss[2], proving.LockPath))[0]
		m := zksync.NewMutex(ss[0], proving.LockPath)
		v.Flush()
		list, err := m.Contenders(context.Background())
		require.NoError(t, err)
		require.Len(t, list, 3)
		host, _ := os.Hostname()
		for i, c := range list {
			require.Equal(t, i, c.Position)
			require.Equal(t, zksync.KindLock, c.Kind)
			require.Equal(t, ss[i].ID(), c.Session)
			require.Equal(t, os.Getpid(), c.Owner.PID)
			require.Equal(t, host, c.Owner.Host)
			require.Equal(t, []string{"billing", "nightly", ""}[i], c.Owner.Name)
			require.WithinRange(t, c.Since, before, time.Now().Add(time.Second))
			require.True(t, strings.HasPrefix(c.Node, proving.LockPath+"/"))
			want := zksync.Waiting
			if i == 0 {
				want = zksync.Held
			}
			require.Equal(t, want, c.State)
		}
		require.Equal(t, holder.Node(), list[0].Node)
		require.Equal(t, holder.Token(), list[0].Token)
		require.NoError(t, holder.Unlock())
		for i, a := range []*proving.Attempt{named, nameless} {
			l := v.Granted(a)
			require.Equal(t, list[i+1].Token, l.Token(), "a waiter's token is known before its grant")
			require.Equal(t, list[i+1].Node, l.Node())
			require.NoError(t, l.Unlock())
		}
		v.Flush()
		list, err = zksync.Contenders(context.Background(), ss[2], proving.LockPath)
		require.NoError(t, err)
		require.Empty(t, list)
		list, err = zksync.Contenders(context.Background(), ss[2], "/locks/never")
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

func TestALeaseFractionEndsLeasesBeforeTheServersEndTheSession(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		timeout := v.Span(4*time.Second, 24*time.Second)
		s := v.Session(zksync.WithTimeout(timeout), zksync.WithLeaseFraction(0.5))
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		told := l.Done()
		next := v.Line(v.Mutexes(1)...)[0]
		proving.Pause(t, v, 3*timeout/4) // renewed all the time
		require.True(t, l.Valid())
		start := time.Now()
		heal := v.Partition(s)
		v.Awaits(told, "the holder to be told")
		got := time.Since(start)
		require.LessOrEqual(t, got, timeout/2+v.Slack())
		require.GreaterOrEqual(t, got, timeout/2-timeout/6-v.Slack(), "it is pinged three times in that span")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.True(t, next.Pending(), "the servers grant when the session is over")
		after := v.Granted(next)
		require.GreaterOrEqual(t, time.Since(start), timeout-timeout/6-v.Slack())
		heal()
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.NoError(t, after.Unlock())
	})
}
