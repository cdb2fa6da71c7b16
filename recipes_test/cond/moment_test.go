package cond_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// onRelease is a tracer that runs a function in the middle of the first release.
type onRelease struct{ f func() }

func (*onRelease) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}

func (*onRelease) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (r *onRelease) Release(context.Context, zksync.ReleaseData) {
	f := r.f
	if r.f = nil; f != nil {
		f()
	}
}

// leased is what the locks that have conditions have in common.
type leased interface {
	zksync.Locker
	TryLock() bool
	Lease() *zksync.Lease
	LockContext(context.Context) (*zksync.Lease, error)
}

// A wait ends its lease and gives up its place. What happens in between must not end it in any other
// way than a loss before or after.
func TestAHoldThatIsLostWhileWaitGivesItUpIsLost(t *testing.T) {
	locks := map[string]func(*zksync.Session) leased{
		"Mutex":             func(s *zksync.Session) leased { return zksync.NewMutex(s, proving.LockPath) },
		"RWMutex":           func(s *zksync.Session) leased { return zkrwmutex.New(s, proving.LockPath) },
		"reentrant.Mutex":   func(s *zksync.Session) leased { return reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath)) },
		"reentrant.RWMutex": func(s *zksync.Session) leased { return reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)) },
	}
	losses := map[string]func(v *proving.Env, s *zksync.Session, l *zksync.Lease){
		"the session ends": func(v *proving.Env, s *zksync.Session, _ *zksync.Lease) { v.Server.Expire(s.ID()) },
		"the node goes":    func(v *proving.Env, _ *zksync.Session, l *zksync.Lease) { v.Remove(l.Node()) },
	}
	for lock, of := range locks {
		for loss, lose := range losses {
			t.Run(lock+"/"+loss, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					tracer := &onRelease{}
					s := v.Session(zksync.WithTracer(tracer))
					m := of(s)
					c := zkcond.New(m, proving.CondPath)
					m.Lock()
					l := m.Lease()
					l.Done() // has the node watched
					v.Quiet()
					tracer.f = func() {
						lose(v, s, l)
						time.Sleep(time.Second)
					}
					c.Wait() // it only locks again
					require.True(t, m.Lease().Valid())
					require.Positive(t, m.Lease().Token().Compare(l.Token()))
					m.Unlock()
					v.Queued(proving.LockPath, 0)
					require.True(t, m.TryLock(), "held by nobody")
					m.Unlock()

					again, err := m.LockContext(context.Background())
					require.NoError(t, err)
					again.Done()
					v.Quiet()
					tracer.f = func() {
						lose(v, s, again)
						time.Sleep(time.Second)
					}
					_, err = c.WaitContext(context.Background(), again)
					require.ErrorIs(t, err, zksync.ErrLost)
					require.True(t, m.TryLock(), "held by nobody")
					m.Unlock()
				})
			})
		}
	}
}

// Close has released the lease, but that is not what the caller should hear.
func TestAWaitOnAClosedSessionFailsWithErrClosed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		w := newSide(v)
		l := v.Lock(w.m)
		require.NoError(t, w.s.Close())
		_, err := w.c.WaitContext(context.Background(), l)
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}
