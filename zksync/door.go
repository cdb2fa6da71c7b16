package zksync

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

func init() {
	door.RW = func(s any, path string, opts any) (write, read any) {
		c := newCohort(s.(*Session), path, KindWrite, writerPolicy, opts.([]Option))
		return &Mutex{c}, door.Readers[*Lease](newReaders(c))
	}
	door.Briefly = func(s any, try func(context.Context) error) bool { return s.(*Session).briefly(try) }
	door.NewPermits = func(s any, path string, n int64, opts any) any {
		return door.Permits[*Lease](newPermits(s.(*Session), path, n, opts.([]Option)))
	}
	door.NewCandidacy = func(s any, path string, c door.Candidate, opts any) any {
		g := newSingles(s.(*Session), path, "", KindLock, opts.([]Option))
		g.q.rival = latches
		g.q.extras = extras{candidate: c.ID, data: c.Data}
		return door.Candidacy[*Lease](candidacy{g})
	}
	door.ProvideScope(func(ctx context.Context, l *Lease, f func(context.Context, *Lease) error) error {
		return l.scope(ctx, f)
	})
	door.Open = func(s any, path string) door.Access {
		return access{newSingles(s.(*Session), path, "", KindLock, nil)}
	}
	door.OwnOption = func(name string) any { return option{use{name, false, false}, func(*settings) {}} }
	door.OpenWith = func(s any, path string, opts any) door.Access {
		return access{newSingles(s.(*Session), path, "", KindLock, opts.([]Option))}
	}
	door.CloseWithin = func(s any, d time.Duration) error { return s.(*Session).closeWithin(d) }
	door.ProvideRelease(func(ctx context.Context, l *Lease) {
		_ = l.unlockWithin(ctx)
	})
	door.ProvideGuard(func(ctx context.Context, l *Lease, ops []any) ([]zk.MultiResponse, error) {
		return l.guardWithin(ctx, ops)
	})
	door.Monitors = append(door.Monitors, func(lock any) any {
		if m, ok := lock.(*Mutex); ok && m != nil {
			return door.Monitor[*Lease](monitor{m.c})
		}
		return nil
	})
}

// access implements door.Access.
type access struct{ g *singles }

func (a access) Misuse() error            { return a.g.misuse }
func (a access) Client() *zkconn.Client   { return a.g.q.s.client }
func (a access) Full(path string) string  { return a.g.q.s.full(path) }
func (a access) Local(path string) string { return a.g.q.s.local(path) }
func (a access) Spawn(f func()) bool      { return a.g.q.s.spawn(f) }
func (a access) Begin() bool              { return a.g.q.s.begin() }
func (a access) End()                     { a.g.q.s.work.Done() }
func (a access) Closed() <-chan struct{}  { return a.g.q.s.ctx.Done() }
func (a access) ACL() []zk.ACL            { return a.g.q.acl }
func (a access) Owner() []byte            { return encodeOwner(a.g.q.owner(), time.Now()) }

func (a access) In(ctx context.Context, f func(context.Context, *zkconn.Epoch) error) error {
	if a.g.misuse != nil {
		return a.g.misuse
	}
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	return a.g.q.inUnjoined(ctx, f) // f may be the user's, who may close the session
}
