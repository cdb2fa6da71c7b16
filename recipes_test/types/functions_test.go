package types_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// runs are the ways to run a function of the user. Each runs f once, with a context if the function has one, and returns f's error or another.
var runs = map[string]func(ctx context.Context, s *zksync.Session, f func(ctx context.Context) error) error{
	"mutex": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		return zksync.NewMutex(s, "/f/mutex").Do(ctx, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) })
	},
	"multi": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		m := zksync.MultiLock(zksync.NewMutex(s, "/f/multi/1"), zksync.NewMutex(s, "/f/multi/2"))
		return m.Do(ctx, func(ctx context.Context, _ zksync.Leases) error { return f(ctx) })
	},
	"write": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		return zkrwmutex.New(s, "/f/rw").Do(ctx, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) })
	},
	"read": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		rw := zkrwmutex.New(s, "/f/read")
		if err := rw.RDo(ctx, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) }); err != nil {
			return err
		}
		return rw.Do(ctx, func(context.Context, *zksync.Lease) error { return nil })
	},
	"reentrant": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		return reentrant.NewMutex(zksync.NewMutex(s, "/f/reentrant")).Do(ctx, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) })
	},
	"reentrant write": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		return reentrant.NewRWMutex(zkrwmutex.New(s, "/f/rrw")).Do(ctx, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) })
	},
	"semaphore": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		return zksemaphore.NewWeighted(s, "/f/sem", 2).Do(ctx, 2, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) })
	},
	"once": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		_, err := zkonce.New(s, "/f/once").DoContext(ctx, func(ctx context.Context) ([]byte, error) { return nil, f(ctx) })
		return err
	},
	"flight": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		_, err, _ := zkflight.New[int](s, "/f/flight").Do(ctx, "key", func(ctx context.Context) (int, error) { return 1, f(ctx) })
		return err
	},
	"election": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		return zkelection.New(s, "/f/election", zkelection.Candidate{}).Run(ctx, func(ctx context.Context, _ *zksync.Lease) error { return f(ctx) })
	},
	"barrier": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		b := zkbarrier.NewBarrier(s, "/f/barrier", 1, zkbarrier.WithAction(f))
		_, err := b.Await(ctx)
		if errors.Is(err, zksync.ErrBroken) { // as after a failure of the action: the breach is to be seen, and reset
			err = errors.Join(err, b.Reset(ctx))
		}
		return err
	},
	"phaser": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) (err error) {
		p := zkphaser.New(s, "/f/phaser", zkphaser.WithOnAdvance(func(ctx context.Context, _, _ int) bool { err = f(ctx); return false }))
		if _, err := p.Register(ctx); err != nil {
			return err
		}
		if _, err := p.ArriveAndDeregister(ctx); err != nil {
			return err
		}
		return err
	},
	"map": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		_, err := zkmap.New[string, int](s, "/f/map").Update(ctx, "key", func(int, bool) (int, bool, error) { return 1, true, f(ctx) })
		return err
	},
	"value": func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error {
		_, err := zkatomic.NewValue[int](s, "/f/value").Update(ctx, func(int, bool) (int, error) { return 1, f(ctx) })
		return err
	},
}

// each runs a test for every way to run a function.
func each(t *testing.T, test func(t *testing.T, v *proving.Env, name string, run func(ctx context.Context, s *zksync.Session, f func(context.Context) error) error)) {
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) { test(t, v, name, run) })
		})
	}
}

// What the function had is free at once, for its own process and for others.
func TestAFunctionThatPanicsOrExitsLeavesNothingHeld(t *testing.T) {
	each(t, func(t *testing.T, v *proving.Env, name string, run func(context.Context, *zksync.Session, func(context.Context) error) error) {
		s, other := v.Session(), v.Session()
		for _, end := range []func(){runtime.Goexit, func() { panic("a panic of the test's own") }} {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_ = run(t.Context(), s, func(context.Context) error { end(); return nil })
			}()
			v.Awaits(ended, "the end of the function")
		}
		for _, next := range []*zksync.Session{other, s} {
			if name == "barrier" || name == "phaser" {
				continue // the others are told that it is broken, or run it again: see their own tests
			}
			begun := time.Now()
			require.NoError(t, run(t.Context(), next, func(context.Context) error { return nil }))
			v.Within(begun, time.Second, "the next one")
		}
	})
}

type key struct{}

// The context of the function has the values and the deadline of the caller's, and ends with its cause.
func TestAFunctionHasTheContextOfItsCaller(t *testing.T) {
	errEnough := errors.New("enough")
	each(t, func(t *testing.T, v *proving.Env, name string, run func(context.Context, *zksync.Session, func(context.Context) error) error) {
		deadline := time.Now().Add(time.Hour)
		ctx, stop := context.WithDeadline(context.WithValue(t.Context(), key{}, "of the caller"), deadline)
		defer stop()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		called := make(chan struct{})
		go func() {
			_ = run(ctx, v.Session(), func(ctx context.Context) error {
				defer close(called)
				if v := ctx.Value(key{}); v != "of the caller" {
					t.Errorf("the value is %v", v)
				}
				if name == "flight" || name == "phaser" { // they go on when a caller has left
					return nil
				}
				if at, is := ctx.Deadline(); !is || !at.Equal(deadline) {
					t.Errorf("the deadline is %v", at)
				}
				cancel(errEnough)
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, errEnough) {
					t.Errorf("the cause is %v", cause)
				}
				return ctx.Err()
			})
		}()
		v.Awaits(called, "the function")
		v.Quiet()
	})
}
