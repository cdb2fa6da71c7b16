package zkphaser

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// An advance with the function of WithOnAdvance has three steps, all under a lock at "action":
//
//   - delete the directory of those who have still to arrive. It must be empty,
//     and after that no party can be registered;
//   - run the function;
//   - advance.
//
// The transactions of the first and the last step check the node of the lease, so the servers refuse them when the
// lease is lost. If the holder dies between these steps, the directory is gone and the phase is the same. The next
// process that sees that and gets the lock begins with the function.

// outcome is how an action ended.
type outcome struct {
	next     *state // nil if this action did not make the phaser advance
	err      error
	panicked any
}

// act runs the function of WithOnAdvance for a phase and then makes the phaser advance, unless another process does.
//
// The function runs in a goroutine that does not end with ctx, because once it has begun it is to be finished. Close
// of the session does not wait for it, because it may take long, or close the session itself.
func (p *Phaser) act(ctx context.Context, e *zkconn.Epoch, phase int) (next *state, err error) {
	out, left := make(chan outcome), make(chan struct{})
	defer close(left)
	go func() {
		o := outcome{err: errors.New("zkphaser: the function of WithOnAdvance has not returned")}
		defer func() {
			if o.panicked = recover(); o.panicked != nil { // it goes on in another goroutine, without its traceback
				p.at.Logger().Error("the function of WithOnAdvance panicked", "path", p.path, "panic", o.panicked, "stack", string(debug.Stack()))
			}
			select {
			case out <- o:
			case <-left:
				if o.panicked != nil {
					panic(o.panicked)
				}
			}
		}()
		o.next, o.err = p.locked(context.WithoutCancel(ctx), e, phase)
	}()
	select {
	case o := <-out:
		switch {
		case o.panicked != nil:
			panic(o.panicked)
		case errors.Is(o.err, zksync.ErrLost):
			// The lease reports its loss a little before the epoch ends; or somebody removed the node of the lease.
			// In both cases the caller looks again.
			return nil, new(node.Pace).Rest(ctx, e)
		}
		return o.next, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
}

// locked is act under the lock.
func (p *Phaser) locked(ctx context.Context, e *zkconn.Epoch, phase int) (next *state, err error) {
	err = p.at.In(ctx, func(ctx context.Context, now *zkconn.Epoch) error {
		if now != e {
			return zksync.ErrLost
		}
		return p.turns.Do(ctx, func(_ context.Context, l *zksync.Lease) (err error) {
			next, err = p.held(ctx, l, e, phase)
			return err
		})
	})
	switch {
	case next == nil:
		return nil, err
	case next.Terminated:
		_ = e.Delete(ctx, p.action()) // refused while other processes are in it
	}
	return next, nil
}

// held is act while the lock is held.
func (p *Phaser) held(ctx context.Context, l *zksync.Lease, e *zkconn.Epoch, phase int) (*state, error) {
	check := &zk.CheckVersionRequest{Path: p.at.Full(l.Node()), Version: -1}
	next := p.arrivals(after(phase))
	res, err := p.turn().Transact(ctx, e, check,
		&zk.CheckVersionRequest{Path: p.wait(phase), Version: -1},
		&zk.DeleteRequest{Path: p.arrivals(phase), Version: -1},
		&zk.SetDataRequest{Path: next, Version: -1})
	var arrived *zk.Stat
	switch {
	// From here on no party can be registered, because the directory is gone: this is the number of all parties.
	case err == nil:
		arrived = res[3].Stat
	case record.RefusedAt(err, 2, zk.ErrNoNode): // another process had begun, or this very request was applied before
	case record.Conflict(err):
		return nil, nil // the phaser has advanced, or a party was registered, or the lease is lost
	default:
		return nil, err
	}
	if arrived == nil { // no answer told how many have arrived
		if arrived, err = p.stat(ctx, e, after(phase)); err != nil {
			return nil, err
		}
	}
	ended := p.onAdvance(l.Context(), phase, int(arrived.NumChildren))
	return p.turnTo(ctx, e, state{Phase: after(phase), Terminated: ended}, check)
}
