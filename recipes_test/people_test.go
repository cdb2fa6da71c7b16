package recipes_test

import (
	"context"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestContendersShowWhoHoldsAndWhoWaits(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		before := time.Now().Add(-time.Second)
		ss := []*zksync.Session{v.session(zksync.WithName("billing")), v.session(zksync.WithName("billing")), v.session()}
		holder := v.lock(zksync.NewMutex(ss[0], lockPath))
		named := v.line(zksync.NewMutex(ss[1], lockPath, zksync.WithName("nightly")))[0]
		nameless := v.line(zksync.NewMutex(ss[2], lockPath))[0]
		m := zksync.NewMutex(ss[0], lockPath)
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
			require.True(t, strings.HasPrefix(c.Node, lockPath+"/"))
			want := zksync.Waiting
			if i == 0 {
				want = zksync.Held
			}
			require.Equal(t, want, c.State)
		}
		require.Equal(t, holder.Path(), list[0].Node)
		require.Equal(t, holder.Token(), list[0].Token)
		require.NoError(t, holder.Unlock())
		for i, a := range []*attempt{named, nameless} {
			l := v.granted(a)
			require.Equal(t, list[i+1].Token, l.Token(), "a waiter's token is known before its grant")
			require.Equal(t, list[i+1].Node, l.Path())
			require.NoError(t, l.Unlock())
		}
		list, err = zksync.Contenders(context.Background(), ss[2], lockPath)
		require.NoError(t, err)
		require.Empty(t, list)
		list, err = zksync.Contenders(context.Background(), ss[2], "/locks/never")
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

// mortal opens a session of a process whose connections end with a crash. Nobody else's do.
func mortal(v *env, opts ...zksync.Option) (s *zksync.Session, crash func()) {
	v.t.Helper()
	if !v.virtual {
		s = v.session(opts...)
		return s, func() { v.cutOff(s) }
	}
	var dead atomic.Bool
	s = v.session(append(opts, zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dead.Load() {
			return nil, net.ErrClosed
		}
		return v.srv.DialContext(ctx, network, address)
	}))...)
	return s, func() {
		dead.Store(true)
		v.disconnect(s)
	}
}

func TestASuccessorWithTheSameSessionFileFreesWhatItsPredecessorHeld(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		dir := t.TempDir()
		s, crash := mortal(v, zksync.WithSessionFile(dir+"/first"), zksync.WithTimeout(v.span(8*time.Second, 20*time.Second)))
		l := v.lock(zksync.NewMutex(s, lockPath))
		next := v.line(v.mutexes(1)...)[0]

		// The copy stands for the lock on the file, which ends with its process.
		crash()
		left, err := os.ReadFile(dir + "/first")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(dir+"/second", left, 0o600))
		start := time.Now()
		successor := v.session(zksync.WithSessionFile(dir + "/second"))
		require.NotEqual(t, s.ID(), successor.ID())
		after := v.granted(next)
		v.atOnce(start, "the grant, without which it would take the predecessor's timeout")
		require.NoError(t, after.Unlock())
		v.awaits(l.Done(), "the predecessor to find out by its clock, had it not died")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
	})
}

func TestASessionFileBelongsToOneSessionAtATime(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		file := t.TempDir() + "/session"
		s := v.session(zksync.WithSessionFile(file))
		l := v.lock(zksync.NewMutex(s, lockPath))
		_, err := zksync.Connect(context.Background(), "zk:2181", zksync.WithSessionFile(file))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		require.NoError(t, s.Close())
		left, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, left, "nothing is left to clean up")
		require.NoError(t, v.lock(zksync.NewMutex(v.session(zksync.WithSessionFile(file)), lockPath)).Unlock())
	})
}

func TestALeaseFractionEndsLeasesBeforeTheServersEndTheSession(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		timeout := v.span(4*time.Second, 24*time.Second)
		s := v.session(zksync.WithTimeout(timeout), zksync.WithLeaseFraction(0.5))
		l := v.lock(zksync.NewMutex(s, lockPath))
		told := l.Done()
		next := v.line(v.mutexes(1)...)[0]
		pause(t, v, 3*timeout/4) // renewed all the time
		require.True(t, l.Valid())
		start := time.Now()
		heal := v.partition(s)
		v.awaits(told, "the holder to be told")
		got := time.Since(start)
		require.LessOrEqual(t, got, timeout/2+v.slack())
		require.GreaterOrEqual(t, got, timeout/2-timeout/6-v.slack(), "it is pinged three times in that span")
		require.ErrorIs(t, l.Err(), zksync.ErrLost)
		require.True(t, next.pending(), "the servers grant when the session is over")
		after := v.granted(next)
		require.GreaterOrEqual(t, time.Since(start), timeout-timeout/6-v.slack())
		heal()
		require.ErrorIs(t, l.Unlock(), zksync.ErrLost)
		require.NoError(t, after.Unlock())
	})
}
