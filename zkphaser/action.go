package zkphaser

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// An advance with the function of WithOnAdvance is three steps, all under a lock at "action": delete the directory of
// those who have still to arrive, which must be empty, so that nobody can be registered any more; run the function;
// advance. The transactions of the first and the last step check the node of the lease, so they are refused when it is
// lost. If its holder dies in between, the directory is gone and the phase is the same: whoever sees that and gets the
// lock begins with the function.

// outcome is how an action ended.
type outcome struct {
	next     *turn // nil if the phaser did not advance by it
	err      error
	panicked any
}

// act runs the function of WithOnAdvance for a phase and then has the phaser advance, unless somebody else does.
//
// That happens in a goroutine that does not end with ctx: once the function has begun it is to be done.
func (p *Phaser) act(ctx context.Context, e *zkconn.Epoch, phase int) (next *turn, err error) {
	out, left := make(chan outcome, 1), make(chan struct{})
	defer close(left)
	if !p.at.Begin() {
		return nil, zksync.ErrClosed
	}
	go func() {
		a := &action{p: p, joined: true}
		defer a.end()
		ctx, stop := p.inSession(context.WithoutCancel(ctx), e)
		defer stop()
		a.locked(ctx, e, phase, out, left)
	}()
	select {
	case o := <-out:
		switch {
		case o.panicked != nil:
			panic(o.panicked)
		case o.err != nil && e.Cause() != nil: // that is why, but the lock says it otherwise
			return nil, zkconn.ErrOver
		}
		return o.next, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
}

// action is one attempt. Close of the session waits for it while it is joined: not while it runs the function, which may
// take long, or close the session itself.
type action struct {
	p      *Phaser
	joined bool
}

func (a *action) end() {
	if a.joined {
		a.p.at.End()
	}
}

// call runs the function of WithOnAdvance.
func (a *action) call(ctx context.Context, phase, registered int) bool {
	a.joined = false
	a.p.at.End()
	defer func() { a.joined = a.p.at.Begin() }()
	return a.p.onAdvance(ctx, phase, registered)
}

// locked is act under the lock. left is closed when nobody waits for its outcome any more.
func (a *action) locked(ctx context.Context, e *zkconn.Epoch, phase int, out chan<- outcome, left <-chan struct{}) {
	p := a.p
	l, err := p.turns.LockContext(ctx)
	if err != nil {
		out <- outcome{err: err}
		return
	}
	o, returned := outcome{err: errors.New("zkphaser: the function of WithOnAdvance has not returned")}, false
	defer func() {
		x := recover()
		_ = l.Unlock() // so that another one may try
		if o.next != nil && o.next.ended {
			_ = e.Delete(ctx, p.action()) // unless somebody else is in it
		}
		select {
		case <-left:
			if x != nil {
				panic(x)
			}
		default:
		}
		if !returned {
			o.panicked = x
		}
		out <- o
	}()
	held := &zk.CheckVersionRequest{Path: p.at.Full(l.Path()), Version: -1}
	o.next, o.err = a.held(ctx, l, e, held, phase)
	returned = true
}

// held is act while the lock is held, which check sees to.
func (a *action) held(ctx context.Context, l *zksync.Lease, e *zkconn.Epoch, check *zk.CheckVersionRequest, phase int) (*turn, error) {
	p := a.p
	next := p.arrivals(after(phase))
	res, err := record.Transact(ctx, e, check,
		&zk.CheckVersionRequest{Path: p.wait(phase), Version: -1},
		&zk.DeleteRequest{Path: p.arrivals(phase), Version: -1},
		&zk.SetDataRequest{Path: next, Version: -1})
	var registered int
	switch {
	case err == nil && res[3].Stat != nil:
		registered = children(res[3].Stat)
	case err == nil, record.RefusedAt(err, 2, zk.ErrNoNode): // somebody had begun, perhaps this very request
		stat, _, err := e.Exists(ctx, next)
		if err != nil {
			return nil, err
		}
		registered = children(stat)
	case record.Conflict(err):
		return nil, nil // it has advanced, or somebody was registered; or the lease is lost
	default:
		return nil, err
	}
	ended := a.call(l.Context(), phase, registered)
	return p.turnTo(ctx, e, turn{after(phase), ended}, check)
}

// inSession returns a context that ends with ctx, with the ZooKeeper session of e, cause
// zksync.ErrLost, and when the session is closed.
func (p *Phaser) inSession(ctx context.Context, e *zkconn.Epoch) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	hook := e.OnLost(func(error) { cancel(zksync.ErrLost) })
	go func() {
		select {
		case <-p.at.Closed():
			cancel(zksync.ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { hook.Stop(); cancel(nil) }
}
