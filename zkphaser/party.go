package zkphaser

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// register registers n parties, one after the other. As soon as one of them is, the phase cannot end, so they have
// it in common.
func (p *Phaser) register(ctx context.Context, e *zkconn.Epoch, n int) (t turn, err error) {
	p.detach(e)
	p.mu.Lock()
	t.phase = p.phase
	known := p.phase > 0 || len(p.parties) > 0
	p.mu.Unlock()
	var made []*party
	for pace := (node.Pace{Free: 1}); ; known = false {
		if !known || n == 0 {
			if t, err = p.learn(ctx, e); err != nil || t.ended || n == 0 {
				break
			}
		}
		if made, err = p.registerAt(ctx, e, t.phase, made, n); err == nil {
			p.own(e, made)
			return t, nil
		}
		if !record.RefusedAt(err, 0, zk.ErrNoNode) {
			break
		}
		if err = p.refreshed(ctx, e, t.phase); err != nil {
			break
		}
		if err = pace.Rest(ctx, e); err != nil {
			break
		}
	}
	for _, x := range made {
		if x.lingers { // the request may be applied again when its party is gone
			e.AmbiguousCreate(p.arrivals(x.at), x.name, e.Connection())
		}
		e.Reap(zkconn.Orphan{Dir: p.arrivals(x.at), Node: p.node(x)})
	}
	return t, err
}

// registerAt adds to those who were made at a phase, until they are n. It is refused if the phaser is not in that phase,
// or about to advance.
func (p *Phaser) registerAt(ctx context.Context, e *zkconn.Epoch, phase int, made []*party, n int) ([]*party, error) {
	for len(made) < n {
		x := record.Party{
			Dir: p.arrivals(phase), Name: "party-" + node.NewUUID(), Data: p.at.Owner(), ACL: p.at.ACL(),
			Checks: []any{&zk.CheckVersionRequest{Path: p.wait(phase), Version: -1}},
		}
		err := x.Join(ctx, e)
		if record.RefusedAt(err, 1, zk.ErrNoNode) { // the directory: it is about to advance
			err = &zkconn.TxnError{Index: 0, Err: zk.ErrNoNode}
		}
		if err != nil {
			return made, err
		}
		made = append(made, &party{name: x.Name, epoch: e, gone: make(chan struct{}), at: phase, lingers: x.Lingers})
	}
	return made, nil
}

// refreshed waits, after a refusal in a phase, until this server knows of what the refusal was
// about. If that is that the phaser is about to advance, it waits for that.
func (p *Phaser) refreshed(ctx context.Context, e *zkconn.Epoch, phase int) error {
	t, err := p.learnNow(ctx, e)
	if err != nil || t.ended || t.phase != phase {
		return err
	}
	_, there, err := e.Exists(ctx, p.arrivals(phase))
	if err != nil || there {
		return err
	}
	_, err = p.await(ctx, e, phase)
	return err
}

// isThere reports whether there is a node, by what the leader of the servers knows.
func (p *Phaser) isThere(ctx context.Context, e *zkconn.Epoch, node string) (bool, error) {
	if err := record.Synced(ctx, e, p.base()); err != nil {
		return false, err
	}
	_, there, err := e.Exists(ctx, node)
	return there, err
}

// arriveOnce has a party arrive, which it may have done already, and the phaser advance if it
// is the last. t is that at which it arrived, or tells that the phaser has terminated. next is
// what it is in after an advance that was made here.
func (p *Phaser) arriveOnce(ctx context.Context, e *zkconn.Epoch, x *party, leave bool) (t turn, next *turn, arrived bool, err error) {
	pace := node.Pace{Free: 1}
	for {
		if err := e.Await(ctx); err != nil {
			return t, nil, false, err
		}
		moved, parted := false, false
		if x.unsure {
			if moved, parted, err = p.findMove(ctx, e, x, leave); err != nil {
				return t, nil, false, err
			}
		}
		left, registered := -1, 0
		if !moved {
			if left, registered, err = p.move(ctx, e, x, leave); errors.Is(err, record.ErrAgain) {
				if t, err = p.whyRefused(ctx, e, x); err != nil || t.ended {
					return t, nil, false, err
				}
				if err := pace.Rest(ctx, e); err != nil {
					return t, nil, false, err
				}
				continue
			}
			if err != nil {
				return t, nil, false, err
			}
		}
		t = turn{phase: x.at}
		p.moved(x, leave)
		next, err = p.follow(ctx, e, t.phase, left, registered)
		if parted && err == nil && next == nil { // and if that phase is over, it was one of the next
			next, err = p.follow(ctx, e, after(t.phase), -1, 0)
		}
		return t, next, true, err
	}
}

// moved notes an arrival.
func (p *Phaser) moved(x *party, leave bool) {
	if x.lingers { // where it is no more
		x.epoch.AmbiguousCreate(p.arrivals(x.at), x.name, x.epoch.Connection())
		x.lingers = false
	}
	p.mu.Lock()
	x.at, x.unsure = after(x.at), false
	p.mu.Unlock()
	if leave || x.leaving {
		p.forget(x)
	}
}

// move makes the transaction of an arrival and tells how many have still to arrive, and how
// many have. left is -1 if that is not known. errAgain means that it was refused, or may not
// have been made.
func (p *Phaser) move(ctx context.Context, e *zkconn.Epoch, x *party, leave bool) (left, arrived int, err error) {
	ops := []any{&zk.CheckVersionRequest{Path: p.wait(x.at), Version: -1}, &zk.DeleteRequest{Path: p.node(x), Version: -1}}
	if !leave {
		ops = append(ops, &zk.CreateRequest{Path: p.nextNode(x), Data: p.at.Owner(), Acl: p.at.ACL(), Flags: zk.FlagEphemeral})
	}
	ops = append(ops, &zk.SetDataRequest{Path: p.arrivals(x.at), Version: -1},
		&zk.SetDataRequest{Path: p.arrivals(after(x.at)), Version: -1})
	was := x.leaving // a request that was looked for in vain may yet be applied
	x.unsure, x.leaving = true, was || leave
	call := e.StartMulti(ops...)
	if _, err := call.Wait(ctx, e); !record.Answered(call) {
		return -1, 0, err
	}
	res, err := call.Result()
	var refused *zkconn.TxnError
	switch {
	case err == nil:
		x.leaving = leave // and no other one can be applied any more
		here, next := res[len(res)-2].Stat, res[len(res)-1].Stat
		if here == nil || next == nil {
			return -1, 0, nil
		}
		return int(here.NumChildren), int(next.NumChildren), nil
	case errors.Is(err, zkconn.ErrNotSent):
		x.unsure, x.leaving = false, was
		return -1, 0, record.ErrAgain
	case errors.As(err, &refused) && record.Conflict(err):
		return -1, 0, record.ErrAgain
	case zkconn.Unknown(err):
		if err := e.Pause(ctx, record.Pause); err != nil {
			return -1, 0, err
		}
		return -1, 0, record.ErrAgain
	case errors.Is(err, zk.ErrSessionExpired):
		return -1, 0, zkconn.ErrOver
	}
	x.unsure, x.leaving = false, was
	return -1, 0, err
}

// findMove finds out whether a party has arrived of which that is in doubt. parted tells that it
// had arrived by a call that left it registered, and that it is deregistered now.
func (p *Phaser) findMove(ctx context.Context, e *zkconn.Epoch, x *party, leave bool) (moved, parted bool, err error) {
	// First where it comes from: it goes the other way only, perhaps between the two looks.
	here, err := p.isThere(ctx, e, p.node(x))
	if err != nil {
		return false, false, err
	}
	if here {
		x.unsure = false
		return false, false, nil
	}
	_, moved, err = e.Exists(ctx, p.nextNode(x))
	switch {
	case err != nil:
		return false, false, err
	case moved && (leave || x.deleted):
		x.leaving, x.deleted = true, true
		if err = e.Delete(ctx, p.nextNode(x)); errors.Is(err, zk.ErrNoNode) {
			err = nil
		}
		return true, true, err
	case moved: // and no deregistration can be applied any more: it would delete the node that is here no more
		x.leaving = false
		return true, false, nil
	case x.leaving:
		return true, true, nil
	}
	t, err := p.learn(ctx, e)
	if err != nil || t.ended {
		return false, false, err
	}
	p.mu.Lock()
	p.lost = true
	p.mu.Unlock()
	p.forget(x) // somebody removed its node by hand
	return false, false, errDetached
}

// whyRefused finds out why an arrival was refused; the zero turn means that it should be tried again.
func (p *Phaser) whyRefused(ctx context.Context, e *zkconn.Epoch, x *party) (turn, error) {
	t, err := p.learnNow(ctx, e)
	switch {
	case err != nil:
		return t, err
	case t.ended:
		p.clear(e, t.phase)
		return t, nil
	case !before(t.phase, x.at):
		return turn{}, nil
	}
	// It has arrived. But the phase may be over without anybody having noticed: the last who had
	// to arrive has died, and nobody waits.
	_, next, err := p.advanceIfDone(ctx, e, t.phase)
	switch {
	case err != nil:
		return t, err
	case next != nil && next.ended:
		return *next, nil
	case next != nil:
		return turn{}, nil
	}
	x.unsure, x.leaving = false, false
	return t, errArrived
}
