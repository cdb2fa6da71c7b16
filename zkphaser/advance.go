package zkphaser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// advance makes the phaser advance from a phase at which no party is left to arrive. registered is the number of
// parties that have arrived. It returns the state after the advance; nil if another process made the phaser advance
// or terminate, registered a party first, or runs the function of WithOnAdvance.
func (p *Phaser) advance(ctx context.Context, e *zkconn.Epoch, phase, registered int) (next *state, err error) {
	if p.onAdvance != nil {
		return p.act(ctx, e, phase)
	}
	ops := []any{&zk.DeleteRequest{Path: p.arrivals(phase), Version: -1}}
	if registered == 0 {
		// The phaser terminates only if there is still no party: one may have been registered and have arrived since.
		// Then the servers refuse the deletion of this directory.
		ops = append(ops, &zk.DeleteRequest{Path: p.arrivals(after(phase)), Version: -1})
	}
	return p.turnTo(ctx, e, state{Phase: after(phase), Terminated: registered == 0}, ops...)
}

// turnTo makes the transaction of an advance to the state to; it begins with ops. It returns that state; nil if the
// servers refused the transaction, because another process was quicker.
func (p *Phaser) turnTo(ctx context.Context, e *zkconn.Epoch, to state, ops ...any) (next *state, err error) {
	wait := p.wait((to.Phase - 1) & math.MaxInt32)
	ops = append(ops, &zk.SetDataRequest{Path: p.base(), Data: p.encode(to), Version: -1})
	if to.Terminated {
		ops = append(ops, &zk.DeleteRequest{Path: p.open(), Version: -1}) // before wait: await depends on this order
	} else {
		// The first change of wait is a write, by which waiters know that this is an advance.
		ops = append(ops, &zk.SetDataRequest{Path: wait, Version: -1},
			&zk.CreateRequest{Path: p.wait(to.Phase), Acl: p.at.ACL()},
			&zk.CreateRequest{Path: p.arrivals(after(to.Phase)), Acl: p.at.ACL()})
	}
	transact := p.turn().Transact
	if p.onAdvance != nil { // since the action began no party can be registered, and the call that has the turn waits for this
		transact = node.RepeatTransaction
	}
	_, err = transact(ctx, e, append(ops, &zk.DeleteRequest{Path: wait, Version: -1})...)
	switch {
	case err == nil:
		next = &to
		p.note(e, to)
	case record.Conflict(err): // an earlier try of this very transaction, whose answer was lost, may have been applied
		to, err = p.learn(ctx, e)
	}
	if err == nil && to.Terminated {
		p.clear(e, to.Phase)
	}
	return next, err
}

// await waits until the phaser has advanced from a phase, and returns the state then.
//
// One event ends the wait. The transaction of an advance writes to the node wait before it deletes that node. The
// transaction of a termination deletes the node open before the node wait. The servers report the first change of
// each transaction first. So a change of wait is an advance, and nothing need be read after it. A deletion, of
// either node, may also be external, so the state is read after it. No event reports that the last party that had to
// arrive has died. So if the wait is long, it also watches one random party of those that have still to arrive:
// when the phase is over, that party has left.
func (p *Phaser) await(ctx context.Context, e *zkconn.Epoch, phase int) (state, error) {
	ends := []string{p.open(), p.wait(phase)}
	sentinel := ""
	s := record.Sentinel{}
	if p.onAdvance != nil { // one waiting call is enough to run it, so they do not all look at the same time
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
		told := end != "" && event != zkconn.Disconnected
		look := p.learn
		if told {
			look = p.seen
		}
		t, err := look(ctx, e)
		if err != nil || t.Terminated || t.Phase != phase {
			return t, err
		}
		if told {
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

// glance says who has still to arrive at a phase, and who has arrived, for a wait that its context has ended.
func (p *Phaser) glance(ctx context.Context, e *zkconn.Epoch, phase int) string {
	return record.Glance(ctx, e, func(ctx context.Context) (string, error) {
		here, _, err := e.Children(ctx, p.arrivals(phase))
		if err != nil {
			return "", err
		}
		there, _, err := e.Children(ctx, p.arrivals(after(phase)))
		if err != nil {
			return "", err
		}
		missing, err := record.Call(ctx, e, p.arrivals(phase), here)
		if err != nil {
			return "", err
		}
		arrived, err := record.Call(ctx, e, p.arrivals(after(phase)), there)
		text := arrived.Say(fmt.Sprintf("%d of %d have arrived", len(there), len(here)+len(there)))
		if names := missing.String(); names != "" {
			text += "; missing: " + names
		}
		return text, err
	})
}

// intact returns zksync.ErrBroken if the nodes of the present phase were removed externally.
func (p *Phaser) intact(ctx context.Context, e *zkconn.Epoch, phase int) error {
	for _, node := range []string{p.wait(phase), p.open()} {
		_, there, err := e.Exists(ctx, node)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		// The phaser may have advanced or terminated since the phase was read.
		// Then the nodes are gone for that reason.
		if t, err := p.learn(ctx, e); err != nil || t.Terminated || t.Phase != phase {
			return err
		}
		return errRemoved
	}
	return nil
}

// advanceIfDone looks for parties that have still to arrive, and makes the phaser advance if there are none: then it
// returns the state after that. Otherwise it returns a node to watch, "" if there is none.
func (p *Phaser) advanceIfDone(ctx context.Context, e *zkconn.Epoch, phase int) (sentinel string, next *state, err error) {
	names, here, err := e.Children(ctx, p.arrivals(phase))
	gone := errors.Is(err, zk.ErrNoNode)
	switch {
	case err != nil && !gone:
		return "", nil, err
	case len(names) > 0:
		return record.Pick(p.arrivals(phase), names), nil, nil
	case gone && p.onAdvance == nil, !gone && here.Cversion == 0:
		return "", nil, nil // the phaser has advanced meanwhile, or no party was ever registered in the phase
	case p.onAdvance != nil: // another process may run the function, or wait for the lock
		busy, _, err := e.Children(ctx, p.action())
		// A node that is no entry of the lock belongs to another program, and might never go.
		busy = slices.DeleteFunc(busy, func(name string) bool {
			_, contends := queue.ParseEntry(name)
			return !contends
		})
		if len(busy) > 0 || err != nil && !errors.Is(err, zk.ErrNoNode) {
			return record.Pick(p.action(), busy), nil, err
		}
	}
	// No party is left to arrive, and no process runs the function. The transaction of the advance checks that none has been
	// registered since.
	arrived, err := p.stat(ctx, e, after(phase))
	if err == nil {
		next, err = p.advance(ctx, e, phase, int(arrived.NumChildren))
	}
	return "", next, err
}

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
				p.at.Log().Once("panic", p.at.Path).Error("the function of WithOnAdvance panicked",
					"path", p.at.Path, "error", fmt.Errorf("%v\n%s", o.panicked, debug.Stack()))
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
			// The lease reports its loss a little before the epoch ends; or the node of the lease was removed externally.
			// In both cases the caller looks again.
			return nil, new(node.Pace).Rest(ctx, e)
		}
		return o.next, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.Over():
		return nil, zkconn.ErrOver
	}
}

// locked is act under the lock.
func (p *Phaser) locked(ctx context.Context, e *zkconn.Epoch, phase int) (next *state, err error) {
	err = p.at.Run(ctx, "", func(ctx context.Context, now *zkconn.Epoch) error {
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
	if arrived == nil { // no answer showed how many have arrived
		if arrived, err = p.stat(ctx, e, after(phase)); err != nil {
			return nil, err
		}
	}
	ended := p.onAdvance(l.Context(), phase, int(arrived.NumChildren))
	return p.turnTo(ctx, e, state{Phase: after(phase), Terminated: ended}, check)
}
