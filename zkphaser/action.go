package zkphaser

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// act runs the function of WithOnAdvance for a phase and then has the phaser advance, unless
// somebody else does. begun tells that somebody had begun: the directory of those who have
// still to arrive is gone.
//
// That happens in a goroutine that does not end with ctx: once it is claimed it is to be done.
func (p *Phaser) act(ctx context.Context, e *zkconn.Epoch, phase int, begun bool) (next *turn, err error) {
	a := &action{p: p, e: e, phase: phase, id: node.NewUUID(), out: make(chan outcome, 1), left: make(chan struct{})}
	defer close(a.left)
	if !p.door.Spawn(func() { a.run(context.WithoutCancel(ctx), begun) }) {
		return nil, zksync.ErrClosed
	}
	select {
	case o := <-a.out:
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.next, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
}

// action is one try to run the function of WithOnAdvance.
type action struct {
	p     *Phaser
	e     *zkconn.Epoch
	phase int
	id    string // the data of its claim
	since int32  // the version of the base node that the claim made
	out   chan outcome
	left  chan struct{} // closed when nobody waits for its outcome any more

	unsettled bool // its claim may still be there
}

// outcome is how an action ended.
type outcome struct {
	next     *turn // nil if the phaser did not advance by it
	err      error
	panicked any
}

// run claims the action, runs it, and has the phaser advance.
func (a *action) run(ctx context.Context, begun bool) {
	whole := ctx
	ctx, stop := a.p.inSession(ctx, a.e)
	defer stop()
	registered, ours, err := a.claim(ctx, begun)
	if err != nil || !ours {
		a.out <- outcome{err: err}
		if err != nil {
			a.retract(whole) // a claim may have been made all the same
		}
		return
	}
	defer func() {
		if a.unsettled {
			a.retract(whole)
		}
	}()
	returned := false
	defer func() {
		if !returned {
			a.panicked(ctx, recover())
		}
	}()
	ended := a.p.onAdvance(ctx, a.phase, registered)
	returned = true
	next, err := a.finish(ctx, turn{after(a.phase), ended})
	a.unsettled = err != nil
	a.out <- outcome{next: next, err: err}
}

// retract gives up the claim of an action whose session was lost. On a tapped connection it may live on, for the reasons that a
// party's node may: see detach. Nobody else could claim the action.
func (a *action) retract(ctx context.Context) {
	_ = a.p.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if e.Ordered() {
			return nil // the claim goes with its session
		}
		a.e = e
		return a.giveUp(ctx)
	})
}

// inSession returns a context that ends with ctx, with the ZooKeeper session of e, cause
// zksync.ErrLost, and when the session is closed.
func (p *Phaser) inSession(ctx context.Context, e *zkconn.Epoch) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	hook := e.OnLost(func(error) { cancel(zksync.ErrLost) })
	go func() {
		select {
		case <-p.door.Closed():
			cancel(zksync.ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { hook.Stop(); cancel(nil) }
}

// panicked gives up the claim, so that another one may try, and passes the panic on; x is nil
// if the function called runtime.Goexit.
func (a *action) panicked(ctx context.Context, x any) {
	a.unsettled = a.giveUp(ctx) != nil
	select {
	case <-a.left:
		if x != nil {
			a.unsettled = false // the process ends, and the session with it
			panic(x)
		}
	default:
	}
	o := outcome{panicked: x}
	if x == nil {
		o.err = fmt.Errorf("zkphaser: the function of WithOnAdvance has not returned")
	}
	a.out <- o
}

// claim makes this session the one that runs the action. From then on nobody can be registered
// until the phaser has advanced, because the directory for that is gone.
//
// A delete of the claim may be made again, or lie in a server's queue, until somebody else has made a claim of the
// same name. So every claim writes to the base node, and what deletes one checks that nobody has written since: the
// base node is never deleted, so no two claims have the same version of it.
func (a *action) claim(ctx context.Context, begun bool) (registered int, ours bool, err error) {
	p, e := a.p, a.e
	next := p.arrivals(after(a.phase))
	ops := []any{&zk.CheckVersionRequest{Path: p.wait(a.phase), Version: -1}}
	version := int32(-1)
	if !begun {
		ops = append(ops, &zk.DeleteRequest{Path: p.arrivals(a.phase), Version: -1})
	} else {
		// The directory cannot be deleted again, so it is the version that keeps a request of ours, which may linger in a
		// server, from being applied when somebody else has claimed the action and given that up: nobody would run it.
		// A claim that is there when the version is known may be part of it.
		stat, there, err := e.Exists(ctx, p.base())
		if err != nil || !there {
			return 0, false, err
		}
		if _, taken, err := e.Exists(ctx, p.claim()); err != nil || taken {
			return 0, false, err
		}
		version = stat.Version
	}
	ops = append(ops, &zk.CreateRequest{Path: p.claim(), Data: []byte(a.id), Acl: p.door.ACL(), Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: p.base(), Data: p.encode(turn{phase: a.phase}), Version: version},
		&zk.SetDataRequest{Path: next, Version: -1})
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return 0, false, err
		}
		res, err := e.StartMulti(ops...).Wait(ctx, e)
		if err == nil && res[len(res)-2].Stat != nil {
			a.since = res[len(res)-2].Stat.Version
			return children(res[len(res)-1].Stat), true, nil
		}
		var refused *zkconn.TxnError
		switch {
		case err == nil, errors.As(err, &refused) && record.Conflict(err), zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		case errors.Is(err, zk.ErrSessionExpired):
			return 0, false, zkconn.ErrOver
		default:
			return 0, false, err
		}
		// Somebody was quicker, perhaps ourselves: the answer was lost, or is that to a request
		// that arrived twice.
		if ours, err := a.holds(ctx); err != nil || ours {
			stat, _, lookErr := e.Exists(ctx, next)
			return children(stat), ours, errors.Join(err, lookErr)
		}
		if refused != nil {
			return 0, false, nil
		}
		if err := pace.Rest(ctx, e); err != nil {
			return 0, false, err
		}
	}
}

// holds finds out whether the claim is this one's, and notes the version of the base node that goes with it. It goes on
// until it knows: a claim that nobody knows of would keep everybody from running the action.
func (a *action) holds(ctx context.Context) (ours bool, err error) {
	err = record.Insist(ctx, a.e, func() error {
		err := record.Synced(ctx, a.e, a.p.base())
		if err == nil {
			ours, err = a.isOurs(ctx)
		}
		if err != nil || !ours {
			return err
		}
		_, stat, err := a.e.Get(ctx, a.p.base())
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return record.ErrAgain // the claim was below it a moment ago
		case err != nil:
			return err
		}
		a.since = stat.Version
		ours, err = a.isOurs(ctx) // and so it was when the version was read
		return err
	})
	return ours, err
}

// isOurs reports whether the claim is this one's, as far as this server knows.
func (a *action) isOurs(ctx context.Context) (bool, error) {
	data, _, err := a.e.Get(ctx, a.p.claim())
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil && string(data) == a.id, err
}

// unclaim deletes the claim, and none that was made later.
func (a *action) unclaim() []any {
	return []any{
		&zk.CheckVersionRequest{Path: a.p.base(), Version: a.since},
		&zk.DeleteRequest{Path: a.p.claim(), Version: -1},
	}
}

// giveUp removes the claim, if it is this one's.
func (a *action) giveUp(ctx context.Context) error {
	var rest record.Rest
	for {
		_, err := record.Transact(ctx, a.e, a.unclaim()...)
		if !record.RefusedAt(err, 0, zk.ErrBadVersion) {
			if record.RefusedAt(err, 1, zk.ErrNoNode) {
				return nil
			}
			return err
		}
		if ours, err := a.holds(ctx); err != nil || !ours { // else somebody has terminated the phaser
			return err
		}
		if err := rest.Take(ctx, a.e); err != nil {
			return err
		}
	}
}

// finish has the phaser advance after the action.
func (a *action) finish(ctx context.Context, to turn) (next *turn, err error) {
	next, err = a.p.turnTo(ctx, a.e, to, a.unclaim()...)
	if err == nil && next == nil {
		err = a.giveUp(ctx) // somebody has terminated it meanwhile
	}
	return next, err
}
