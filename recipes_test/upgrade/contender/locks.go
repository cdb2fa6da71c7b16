package main

import (
	"context"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

func init() {
	types["zksync"] = func(s *zksync.Session) enter { return leased(zksync.NewMutex(s, "/lock").LockContext) }
	types["zksync, lingering"] = func(s *zksync.Session) enter {
		return leased(zksync.NewMutex(s, "/lingering", zksync.WithLinger(1e9)).LockContext)
	}
	types["zkrwmutex"] = func(s *zksync.Session) enter { return leased(zkrwmutex.New(s, "/rw").LockContext) }
	types["zksemaphore"] = func(s *zksync.Session) enter {
		sem := zksemaphore.NewWeighted(s, "/sem", 2)
		return leased(func(ctx context.Context) (*zksync.Lease, error) { return sem.AcquireLease(ctx, 2) })
	}
	types["zkelection"] = func(s *zksync.Session) enter {
		return leased(zkelection.New(s, "/election", zkelection.Candidate{}).Campaign)
	}
	types["reentrant"] = func(s *zksync.Session) enter {
		m := reentrant.NewMutex(zksync.NewMutex(s, "/reentrant"))
		return func(context.Context) (func(), error) {
			m.Lock()
			return m.Unlock, nil
		}
	}
}

// leased enters with a lease.
func leased(get func(context.Context) (*zksync.Lease, error)) enter {
	return func(ctx context.Context) (func(), error) {
		l, err := get(ctx)
		if err != nil {
			return nil, err
		}
		return func() { _ = l.Unlock() }, nil
	}
}
