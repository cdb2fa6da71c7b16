package zkphaser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// catchUp looks at the present phase, and makes the phaser advance if no party is left to arrive. next is the state
// if the phaser has advanced because of that, or has terminated.
func (p *Phaser) catchUp(ctx context.Context, e *zkconn.Epoch) (next *state, err error) {
	t, err := p.learn(ctx, e)
	if err != nil || t.Terminated {
		return &t, err
	}
	_, next, err = p.advanceIfDone(ctx, e, t.Phase)
	return next, err
}

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
		// The first change of wait is a write, by which those who wait know that this is an advance.
		ops = append(ops, &zk.SetDataRequest{Path: wait, Version: -1},
			&zk.CreateRequest{Path: p.wait(to.Phase), Acl: p.at.ACL()},
			&zk.CreateRequest{Path: p.arrivals(after(to.Phase)), Acl: p.at.ACL()})
	}
	transact := p.turn().Transact
	if p.onAdvance != nil { // since the action began nobody can be registered, and whoever has the turn waits for this
		transact = record.Transact
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
// either node, may also be by hand, so the state is read after it. Nobody reports that the last party that had to
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

// glance says, for a wait that its context has ended, who has still to arrive at a phase, and who has arrived.
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

// intact returns zksync.ErrBroken if the nodes of the present phase are gone because somebody removed them by hand.
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
		// A node that is no entry of the lock is somebody else's, and might never go.
		busy = slices.DeleteFunc(busy, func(name string) bool {
			_, contends := queue.ParseEntry(name)
			return !contends
		})
		if len(busy) > 0 || err != nil && !errors.Is(err, zk.ErrNoNode) {
			return record.Pick(p.action(), busy), nil, err
		}
	}
	// Nobody is left to arrive, and no process runs the function. The transaction of the advance
	// checks that nobody has been registered since.
	arrived, err := p.stat(ctx, e, after(phase))
	if err == nil {
		next, err = p.advance(ctx, e, phase, int(arrived.NumChildren))
	}
	return "", next, err
}
