package mutex_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance010AHandleLocksAgainWithAFreshNode(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(2)
		first := v.Lock(ms[0])
		require.NoError(t, first.Unlock())
		second := v.Lock(ms[0])
		require.NotEqual(t, first.Node(), second.Node())
		require.Positive(t, second.Token().Compare(first.Token()))
		require.False(t, ms[1].TryLock(), "exclusion must hold again")
		require.NoError(t, first.Unlock(), "a late unlock of the first hold")
		require.True(t, second.Valid(), "it must not touch the second")
		require.True(t, v.Exists(second.Node()))
		require.NoError(t, second.Unlock())
	})
}

func TestAcceptance011UnlockWithoutALockPanicsLikeSync(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		const message = "zksync: unlock of unlocked mutex"
		require.PanicsWithValue(t, message, m.Unlock)
		m.Lock()
		m.Unlock()
		require.PanicsWithValue(t, message, m.Unlock)
		l := v.Lock(m)
		require.PanicsWithValue(t, message, m.Unlock, "a lease is unlocked through itself")
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
	})
}

// releaseHook is a tracer that runs a function while a lease ends, before its lock can be held again.
type releaseHook struct{ run func() }

func (*releaseHook) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (*releaseHook) AcquireEnd(context.Context, zksync.AcquireEndData) {}
func (h *releaseHook) Release(context.Context, zksync.ReleaseData)     { h.run() }

func TestAcceptance011OfTwoUnlocksAtTheSameTimeOnePanics(t *testing.T) {
	type locker interface {
		sync.Locker
		Lease() *zksync.Lease
	}
	for name, c := range map[string]struct {
		of      func(s *zksync.Session) locker
		message string
	}{
		"Mutex":   {func(s *zksync.Session) locker { return zksync.NewMutex(s, proving.LockPath) }, "zksync: unlock of unlocked mutex"},
		"RWMutex": {func(s *zksync.Session) locker { return zkrwmutex.New(s, proving.LockPath) }, "zkrwmutex: Unlock of unlocked RWMutex"},
	} {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				h := &releaseHook{}
				m := c.of(v.Session(zksync.WithTracer(h)))
				second := 0
				h.run = func() {
					second++
					require.PanicsWithValue(t, c.message, m.Unlock)
				}
				m.Lock()
				m.Unlock()
				require.Equal(t, 1, second)

				m.Lock()
				v.Remove(m.Lease().Node())
				v.Awaits(m.Lease().Done(), "the loss")
				m.Unlock() // it ends the lost hold, which others of this process wait for
				require.PanicsWithValue(t, c.message, m.Unlock)
				require.Equal(t, 1, second)
				m.Lock()
				m.Unlock()
			})
		})
	}
}

func TestAcceptance011UnlockOfALeaseMayBeRepeated(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		l := v.Lock(m)
		require.NoError(t, l.Err())
		for range 3 {
			require.NoError(t, l.Unlock())
			require.ErrorIs(t, l.Err(), zksync.ErrReleased)
			require.False(t, l.Valid())
		}
		v.Awaits(l.Done(), "Done of a released lease")
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrReleased)
	})
}

func TestAcceptance012ALockIsOneNodeAndNoneAfterwards(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		m := v.Mutexes(1)[0]
		for range 3 {
			l := v.Lock(m)
			require.Equal(t, []string{l.Node()[len(proving.LockPath)+1:]}, v.Children(proving.LockPath))
			require.NoError(t, l.Unlock())
			v.Left(proving.LockPath, 0, "unlocked")
		}
	})
}

func TestTheMirrorFormPanicsWhenTheSessionIsClosed(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath)
		require.NoError(t, s.Close())
		require.ErrorIs(t, panicOf(t, m.Lock), zksync.ErrClosed)
		require.ErrorIs(t, panicOf(t, func() { m.TryLock() }), zksync.ErrClosed)
		_, err := m.LockContext(context.Background())
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

func TestTheMirrorFormPanicsOnMisuse(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for name, m := range map[string]*zksync.Mutex{
			"a malformed path": zksync.NewMutex(s, "locks"),
			"no session":       zksync.NewMutex(nil, proving.LockPath),
			"a foreign option": zksync.NewMutex(s, proving.LockPath, zksync.WithCodec(zksync.Raw)),
		} {
			require.ErrorIs(t, panicOf(t, m.Lock), zksync.ErrMisuse, name)
			require.ErrorIs(t, panicOf(t, func() { m.TryLock() }), zksync.ErrMisuse, name)
			_, err := m.LockContext(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse, name)
			_, err = m.Contenders(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse, name)
			require.Nil(t, m.Lease(), name)
		}
	})
}

// panicOf runs f, which must panic with an error that tells operation and path.
func panicOf(t *testing.T, f func()) (err error) {
	t.Helper()
	defer func() {
		e, ok := recover().(*zksync.Error)
		require.True(t, ok, "the panic value is an *Error")
		require.NotEmpty(t, e.Op)
		err = e
	}()
	f()
	require.Fail(t, "did not panic")
	return nil
}
