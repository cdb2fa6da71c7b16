package types_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// failing is a call of a package, as its errors name it: "zkqueue: put".
type failing func(ctx context.Context, s *zksync.Session, path string) error

var failingCalls = map[string]failing{
	"zksync: lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zksync.NewMutex(s, p).LockContext(ctx))
	},
	"zksync: try-lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zksync.NewMutex(s, p).TryLockContext(ctx))
	},
	"zksync: list": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zksync.Contenders(ctx, s, p))
	},
	"zksync: verify": func(ctx context.Context, s *zksync.Session, p string) error {
		return zksync.Verify(ctx, s, p, zksync.Token{Zxid: 1})
	},
	"zkrwmutex: lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkrwmutex.New(s, p).LockContext(ctx))
	},
	"zkrwmutex: read-lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkrwmutex.New(s, p).RLockContext(ctx))
	},
	"zkrwmutex: list": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkrwmutex.New(s, p).Contenders(ctx))
	},
	"reentrant: lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(reentrant.NewMutex(zksync.NewMutex(s, p)).LockContext(ctx))
	},
	"reentrant: list": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(reentrant.NewMutex(zksync.NewMutex(s, p)).Contenders(ctx))
	},
	"reentrant: read-lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(reentrant.NewRWMutex(zkrwmutex.New(s, p)).RLockContext(ctx))
	},
	"reentrant: try-lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(reentrant.NewRWMutex(zkrwmutex.New(s, p)).TryLockContext(ctx))
	},
	"zksemaphore: acquire": func(ctx context.Context, s *zksync.Session, p string) error {
		return zksemaphore.NewWeighted(s, p, 1).Acquire(ctx, 1)
	},
	"zksemaphore: list": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zksemaphore.NewWeighted(s, p, 1).Contenders(ctx))
	},
	"zkelection: campaign": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkelection.New(s, p, zkelection.Candidate{ID: "a"}).Campaign(ctx))
	},
	"zkelection: list": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkelection.New(s, p, zkelection.Candidate{ID: "a"}).Contenders(ctx))
	},
	"zkelection: state": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkelection.New(s, p, zkelection.Candidate{ID: "a"}).State(ctx))
	},
	"zkcond: state": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkcond.New(zksync.NewMutex(s, "/lock"), p).State(ctx))
	},
	"zkonce: once": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkonce.New(s, p).IsDone(ctx))
	},
	"zkonce: wait": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkonce.NewPromise[int](s, p).Wait(ctx))
	},
	"zkbarrier: await": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkbarrier.NewBarrier(s, p, 2).Await(ctx))
	},
	"zkbarrier: enter": func(ctx context.Context, s *zksync.Session, p string) error {
		return zkbarrier.NewDoubleBarrier(s, p, 2).Enter(ctx)
	},
	"zklatch: state": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zklatch.New(s, p, 1).State(ctx))
	},
	"zkphaser: register": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkphaser.New(s, p).Register(ctx))
	},
	"zkwaitgroup: add": func(ctx context.Context, s *zksync.Session, p string) error {
		return zkwaitgroup.New(s, p).AddContext(ctx, 1)
	},
	"zkflight: state": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkflight.New[int](s, p).State(ctx))
	},
	"zkatomic: load": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkatomic.NewInt64(s, p).Load(ctx))
	},
	"zkatomic: next": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkatomic.NewSequence(s, p).Next(ctx))
	},
	"zkmap: load": func(ctx context.Context, s *zksync.Session, p string) error {
		_, _, err := zkmap.New[string, int](s, p).Load(ctx, "k")
		return err
	},
	"zkqueue: put": func(ctx context.Context, s *zksync.Session, p string) error {
		return zkqueue.New[int](s, p).Put(ctx, 1)
	},
	"zkrate: wait": func(ctx context.Context, s *zksync.Session, p string) error {
		return zkrate.New(s, p, 1, 1).Wait(ctx)
	},
	"zkgroup: join": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkgroup.New(s, p).Join(ctx, zkgroup.Member{ID: "a"}))
	},
	"zkcron: last": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkcron.New(s, p).Last(ctx, "a"))
	},
	"zkdurable: lock": func(ctx context.Context, s *zksync.Session, p string) error {
		return second(zkdurable.NewMutex(s, p).Lock(ctx, "a"))
	},
	"zkwatch: start": func(ctx context.Context, s *zksync.Session, p string) error { return zkwatch.NewTree(s, p).Start(ctx) },
}

func second[T any](_ T, err error) error { return err }

// An error begins with the package whose method was called, and errors.As finds the same in a *zksync.Error.
func TestAnErrorBeginsWithThePackageThatWasCalled(t *testing.T) {
	srv := zktest.Run(t)
	s, closed := srv.Session(t), srv.Session(t)
	require.NoError(t, closed.Close())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range failingCalls {
		pkg, op, _ := strings.Cut(name, ": ")
		for why, c := range map[string]struct {
			ctx  context.Context
			s    *zksync.Session
			path string
			is   error
			text string
		}{
			"misuse":     {t.Context(), s, "l", zksync.ErrMisuse, ` "l": a path begins with "/": misuse`},
			"no session": {t.Context(), nil, "/l", zksync.ErrMisuse, ` /l: a nil Session; open one with Connect: misuse`},
			"context":    {ended, s, "/l", context.Canceled, " /l: context canceled"},
			"closed":     {t.Context(), closed, "/l", zksync.ErrClosed, " /l: session closed"},
		} {
			err := call(c.ctx, c.s, c.path)
			require.ErrorIs(t, err, c.is, "%s: %s", name, why)
			var e *zksync.Error
			require.True(t, errors.As(err, &e), "%s: %s: %v", name, why, err)
			require.Equal(t, []string{pkg, op, c.path, name + c.text}, []string{e.Package, e.Op, e.Path, err.Error()}, why)
		}
	}
}

func TestErrorsOfFunctionsAndLeasesAreOfZksync(t *testing.T) {
	s := zktest.Run(t).Session(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := zksync.Connect(ctx, "")
	_, parsed := zksync.ParseToken("42")
	l, lockErr := zkrwmutex.New(s, "/rw").LockContext(ctx)
	require.NoError(t, lockErr)
	require.NoError(t, l.Unlock())
	_, guarded := l.Guard(ctx)
	for text, err := range map[string]error{
		`zksync: connect: `:    err,
		`zksync: token "42": `: parsed,
		`zksync: guard /rw: `:  guarded,
		`zksync: fence: `:      new(zksync.Fence).Admit(zksync.Token{}),
	} {
		var e *zksync.Error
		require.True(t, errors.As(err, &e), text)
		require.Equal(t, "zksync", e.Package, text)
		require.True(t, strings.HasPrefix(err.Error(), text), err)
	}
}
