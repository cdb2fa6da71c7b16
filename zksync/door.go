package zksync

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

func init() {
	door.RW = func(s any, path string, opts any) (write, read any) {
		c := newCohort(s.(*Session), path, KindWrite, queue.WriterPolicy, opts.([]Option))
		return &Mutex{c}, door.Readers[*Lease](newReaders(c))
	}
	door.Briefly = func(s any, try func(context.Context) error) bool { return s.(*Session).briefly(try) }
	door.NewPermits = func(s any, path string, n int64, opts any) any {
		return door.Permits[*Lease](newPermits(s.(*Session), path, n, opts.([]Option)))
	}
	door.NewCandidacy = func(s any, path string, c door.Candidate, opts any) any {
		g := newSingles(s.(*Session), path, "", KindLock, opts.([]Option))
		g.q.Refuse = latches.refuse
		g.q.Data = func() []byte { return g.content(node.Content{ID: c.ID, Data: c.Data}).Encode() }
		return door.Candidacy[*Lease](candidacy{g})
	}
	door.ProvideScope(func(ctx context.Context, l *Lease, f func(context.Context, *Lease) error) error {
		return l.scope(ctx, f)
	})
	door.Open = func(s any, path string) door.Access {
		return opened{newAccess(s.(*Session), path, nil)}
	}
	door.OwnOption = func(name string) any { return option{use{name, false, false}, func(*settings) {}} }
	door.OpenWith = func(s any, path string, opts any) door.Access {
		return opened{newAccess(s.(*Session), path, opts.([]Option))}
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

// opened implements door.Access.
type opened struct{ *access }

func (a opened) Misuse() error            { return a.misuse }
func (a opened) Client() *zkconn.Client   { return a.s.client }
func (a opened) Full(path string) string  { return a.s.full(path) }
func (a opened) Local(path string) string { return a.s.local(path) }
func (a opened) Spawn(f func()) bool      { return a.s.spawn(f) }
func (a opened) Begin() bool              { return a.s.begin() }
func (a opened) End()                     { a.s.work.Done() }
func (a opened) Closed() <-chan struct{}  { return a.s.ctx.Done() }
func (a opened) ACL() []zk.ACL            { return a.set.acl }
func (a opened) Owner() []byte            { return a.content(node.Content{}).Encode() }

func (a opened) In(ctx context.Context, f func(context.Context, *zkconn.Epoch) error) error {
	if a.misuse != nil {
		return a.misuse
	}
	if ctx.Err() != nil {
		return errs.OfContext(ctx)
	}
	return a.s.inUnjoined(ctx, f) // f may be the user's, who may close the session
}
