package zkphaser

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// catchUp looks at the phase of the moment, and has the phaser advance if nobody is left to arrive. It returns the state if
// the phaser has advanced by that, or terminated.
func (p *Phaser) catchUp(ctx context.Context, e *zkconn.Epoch) (next *state, err error) {
	t, err := p.learn(ctx, e)
	if err != nil || t.Terminated {
		return &t, err
	}
	_, next, err = p.advanceIfDone(ctx, e, t.Phase)
	return next, err
}

// advance has the phaser advance from a phase at which nobody is left to arrive, and returns
// what it is in then. It returns nil if somebody else has had it advance or terminate, or was
// registered first, or runs the action.
func (p *Phaser) advance(ctx context.Context, e *zkconn.Epoch, phase, registered int) (next *state, err error) {
	if p.onAdvance != nil {
		return p.act(ctx, e, phase)
	}
	ops := []any{&zk.DeleteRequest{Path: p.arrivals(phase), Version: -1}}
	if registered == 0 { // is still true: somebody may have been registered and have arrived since
		ops = append(ops, &zk.DeleteRequest{Path: p.arrivals(after(phase)), Version: -1})
	}
	return p.turnTo(ctx, e, state{Phase: after(phase), Terminated: registered == 0}, ops...)
}

// turnTo makes the transaction of an advance, with what it has to begin with. It returns the state
// then, or nil if it was refused, because somebody else was quicker.
func (p *Phaser) turnTo(ctx context.Context, e *zkconn.Epoch, to state, ops ...any) (next *state, err error) {
	wait := p.wait((to.Phase - 1) & math.MaxInt32)
	ops = append(ops, &zk.SetDataRequest{Path: p.base(), Data: p.encode(to), Version: -1})
	if to.Terminated {
		ops = append(ops, &zk.DeleteRequest{Path: p.open(), Version: -1}) // before wait: see await
	} else {
		ops = append(ops, &zk.SetDataRequest{Path: wait, Version: -1},
			&zk.CreateRequest{Path: p.wait(to.Phase), Acl: p.at.ACL()},
			&zk.CreateRequest{Path: p.arrivals(after(to.Phase)), Acl: p.at.ACL()})
	}
	_, err = record.Transact(ctx, e, append(ops, &zk.DeleteRequest{Path: wait, Version: -1})...)
	switch {
	case err == nil:
		next = &to
		p.note(e, to)
	case record.Conflict(err): // perhaps by ourselves: the answer to the first of several tries was lost
		to, err = p.learn(ctx, e)
	}
	if err == nil && to.Terminated {
		p.clear(e, to.Phase)
	}
	return next, err
}

// await waits until the phaser has advanced from a phase, and returns the state then.
//
// One event ends it. Whoever makes the phaser advance writes to wait before it deletes it, in the same transaction. When it
// terminates, open is deleted before wait. The servers tell of the first of these, so no read is needed to know that it was an
// advance; any other deletion may be by hand. Nobody tells that the last party that was to arrive has died. So if
// it takes long, one of those who have still to arrive is watched, a random one: when the phase
// is over, that one has left.
func (p *Phaser) await(ctx context.Context, e *zkconn.Epoch, phase int) (state, error) {
	ends := []string{p.open(), p.wait(phase)}
	sentinel := ""
	s := record.Sentinel{}
	if p.onAdvance != nil { // one is enough to run it
		s.Spread = e.Timeout() / 50
	}
	for {
		quiet := e.Timeout() / 3
		if sentinel != "" {
			quiet = e.Timeout()
		}
		end, event, err := s.Wait(ctx, e, ends, sentinel, quiet)
		switch {
		case err != nil:
			return state{}, err
		case end == ends[1] && event == zkconn.Changed:
			t := state{Phase: after(phase)}
			p.note(e, t)
			return t, nil
		}
		t, err := p.learn(ctx, e)
		if err != nil || t.Terminated || t.Phase != phase {
			return t, err
		}
		if end != "" && event != zkconn.Disconnected {
			if err := p.intact(ctx, e, phase); err != nil {
				return t, err
			}
		}
		next := (*state)(nil)
		if sentinel, next, err = p.advanceIfDone(ctx, e, phase); err != nil {
			return t, err
		}
		if next != nil {
			return *next, nil
		}
	}
}

// intact returns zksync.ErrBroken if the nodes of the phase that the phaser is in are gone: somebody removed them by hand.
func (p *Phaser) intact(ctx context.Context, e *zkconn.Epoch, phase int) error {
	for _, node := range []string{p.wait(phase), p.open()} {
		_, there, err := e.Exists(ctx, node)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		// It may have advanced or terminated since the phase was read.
		if t, err := p.learn(ctx, e); err != nil || t.Terminated || t.Phase != phase {
			return err
		}
		return errRemoved
	}
	return nil
}

// advanceIfDone looks at who has still to arrive, and has the phaser advance if nobody has: then it
// returns the state. Otherwise it returns a node to watch, "" without one.
func (p *Phaser) advanceIfDone(ctx context.Context, e *zkconn.Epoch, phase int) (sentinel string, next *state, err error) {
	names, here, err := e.Children(ctx, p.arrivals(phase))
	gone := errors.Is(err, zk.ErrNoNode)
	switch {
	case err != nil && !gone:
		return "", nil, err
	case len(names) > 0:
		return record.Pick(p.arrivals(phase), names), nil, nil
	case gone && p.onAdvance == nil, !gone && here.Cversion == 0:
		return "", nil, nil // it has advanced meanwhile, or nobody has ever been registered in it
	case p.onAdvance != nil: // somebody runs the function, or waits for that
		busy, _, err := e.Children(ctx, p.action())
		busy = slices.DeleteFunc(busy, func(name string) bool { // a node of somebody else's would never go
			_, contends := queue.ParseEntry(name)
			return !contends
		})
		if len(busy) > 0 || err != nil && !errors.Is(err, zk.ErrNoNode) {
			return record.Pick(p.action(), busy), nil, err
		}
	}
	arrived, err := p.stat(ctx, e, after(phase))
	if err == nil {
		next, err = p.advance(ctx, e, phase, int(arrived.NumChildren))
	}
	return "", next, err
}
