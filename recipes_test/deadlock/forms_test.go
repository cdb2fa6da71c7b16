package deadlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestEveryFormOfALockFindsADeadlock(t *testing.T) {
	type form = func(s *zksync.Session) func(context.Context) error
	leased := func(get func(context.Context) (*zksync.Lease, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := get(ctx)
			return err
		}
	}
	panics := func(f func()) func(context.Context) error {
		return func(context.Context) (err error) {
			defer func() { err, _ = recover().(error) }()
			f()
			return nil
		}
	}
	for name, f := range map[string]form{
		"Lock": func(s *zksync.Session) func(context.Context) error {
			return panics(zksync.NewMutex(s, "/locks/b").Lock)
		},
		"Do": func(s *zksync.Session) func(context.Context) error {
			return func(ctx context.Context) error {
				return zksync.NewMutex(s, "/locks/b").Do(ctx, func(context.Context, *zksync.Lease) error { return nil })
			}
		},
		"MultiLock": func(s *zksync.Session) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := zksync.MultiLock(zksync.NewMutex(s, "/locks/0"), zksync.NewMutex(s, "/locks/b")).LockContext(ctx)
				return err
			}
		},
		"reentrant": func(s *zksync.Session) func(context.Context) error {
			return leased(reentrant.NewMutex(zksync.NewMutex(s, "/locks/b")).LockContext)
		},
		"reentrant Lock": func(s *zksync.Session) func(context.Context) error {
			return panics(reentrant.NewMutex(zksync.NewMutex(s, "/locks/b")).Lock)
		},
		"election": func(s *zksync.Session) func(context.Context) error {
			return leased(zkelection.New(s, "/locks/b", zkelection.Candidate{ID: "x"}).Campaign)
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				one, two := v.Session(detect), v.Session(detect)
				a, b := newOwner(t), newOwner(t)
				a.locks(lock(one, "/locks/a"))
				get := lock(two, "/locks/b")
				if name == "election" {
					get = zkelection.New(two, "/locks/b", zkelection.Candidate{ID: "y"}).Campaign
				}
				b.locks(get)
				b.begins(lock(two, "/locks/a"))
				v.Settled("/locks/a", 2)
				start := time.Now()
				a.begins(func(ctx context.Context) (*zksync.Lease, error) { return nil, f(one)(ctx) })
				a.deadlocked()
				v.Took(start, time.Second, name)
				a.leases[0].Unlock()
				require.NoError(t, <-b.acquired)
				b.unlocks()
			})
		})
	}
}

// Wait returns with the lock, so its wait for the lock never fails: the other one does. What a tracer makes of the context changes nothing.
func TestAConditionLocksAgainWhateverWaitsForIt(t *testing.T) {
	for _, tracer := range []zksync.Tracer{nil, valued{}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			one, two := v.Session(detect, zksync.WithTracer(tracer)), v.Session(detect, zksync.WithTracer(tracer))
			m := zksync.NewMutex(one, "/locks/m")
			c := zkcond.New(m, "/conds/c")
			a, b := newOwner(t), newOwner(t)
			a.locks(lock(one, "/locks/a"))
			a.begins(func(ctx context.Context) (*zksync.Lease, error) {
				l, err := m.LockContext(ctx)
				if err != nil {
					return nil, err
				}
				return c.WaitContext(ctx, l)
			})
			v.Quiet()
			b.locks(lock(two, "/locks/m"))
			b.begins(lock(two, "/locks/a"))
			v.Settled("/locks/a", 2)
			c.Signal()
			v.Settled("/locks/m", 2)
			a.waits()
			b.deadlocked()
			a.waits()
			b.unlocks()
			require.NoError(t, <-a.acquired)
			a.unlocks()
		})
	}
}

// valued is a tracer that gives each acquisition a context of its own.
type valued struct{}

func (valued) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return context.WithValue(ctx, valued{}, "traced")
}
func (valued) AcquireEnd(context.Context, zksync.AcquireEndData) {}
