package zkphaser

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// pick takes a party for an arrival: one that is the first to have to arrive, and among those
// preferably one that may have arrived already.
func (p *Phaser) pick() (*party, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var chosen *party
	for _, x := range p.parties {
		switch {
		case x.busy:
		case chosen == nil, before(x.at, chosen.at), x.at == chosen.at && x.unsure:
			chosen = x
		}
	}
	switch {
	case chosen != nil:
		chosen.busy = true
		return chosen, nil
	case len(p.parties) > 0:
		return nil, errArrived
	case p.lost:
		return nil, errDetached
	}
	return nil, errNoParty
}

// arrive is all the forms of arrival: leave also deregisters the party, and await also waits for the advance.
func (p *Phaser) arrive(ctx context.Context, leave, await bool) (phase int, err error) {
	if err := p.at.Misuse(); err != nil {
		return -1, err
	}
	x, err := p.pick()
	if err != nil {
		return p.refuse(ctx, err)
	}
	release := sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		x.busy = false
	})
	defer release()
	t, arrived, missing := state{}, false, ""
	err = p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		// The session in which the party was registered is over.
		if x.epoch != e {
			p.detach(e)
			return errDetached
		}
		var next *state
		if t, next, arrived, err = p.arriveOnce(ctx, e, x, leave); err != nil || t.Terminated || !await {
			return err
		}
		if next == nil {
			// The party may arrive at the next phase before this call has returned.
			release()
			then, err := p.await(ctx, e, t.Phase)
			if err != nil {
				missing = p.glance(ctx, e, t.Phase)
				return err
			}
			next = &then
		}
		t = *next
		return nil
	})
	switch {
	case err != nil && !arrived:
		return -1, err
	case !await && ctx.Err() != nil: // the party has arrived; others do what is left to do
		return t.number(), nil
	}
	return t.number(), record.Saying(err, missing)
}

// refuse is the result of an arrival without a party. It is not an error if the phaser has terminated.
func (p *Phaser) refuse(ctx context.Context, reason error) (int, error) {
	t, err := p.look(ctx)
	if err == nil && t.Terminated {
		return t.number(), nil
	}
	if err == nil {
		err = reason
	}
	return -1, err
}

// place is where the node of a party is.
type place int

const (
	behind  place = iota // in the directory of the phase at which it has to arrive
	ahead                // in the directory of the next phase: the party has arrived
	nowhere              // the party was deregistered, or somebody removed its node by hand
)

// arriveOnce makes a party arrive, unless it has arrived already, and makes the phaser advance if the party
// is the last. t is the phase at which it arrived, or tells that the phaser has terminated. next is the
// state after an advance that this call made.
func (p *Phaser) arriveOnce(ctx context.Context, e *zkconn.Epoch, x *party, leave bool) (t state, next *state, arrived bool, err error) {
	at, left, registered := behind, -1, 0
	err = record.Insist(ctx, e, func() (err error) {
		// An earlier arrival of this party may have been applied.
		if x.unsure {
			if at, err = p.find(ctx, e, x); err != nil || at == ahead || at == nowhere && x.leaving {
				return err
			}
		}
		if at == behind {
			if left, registered, err = p.move(ctx, e, x, leave); !record.Conflict(err) {
				return err
			}
		}
		if t, err = p.whyRefused(ctx, e, x, at); err == nil && !t.Terminated {
			err = record.ErrAgain
		}
		return err
	})
	if err != nil || t.Terminated {
		return t, nil, false, err
	}
	t = state{Phase: x.at}
	if leave && at == ahead { // it had arrived by a call that left it registered
		select {
		case <-p.remove(x):
		case <-ctx.Done(): // it is removed later
			err = context.Cause(ctx)
		}
	}
	p.moved(x, leave || at == nowhere)
	switch {
	case err != nil:
	case left == 0:
		next, err = p.advance(ctx, e, t.Phase, registered)
	case left < 0: // no answer told how many are left
		next, err = p.catchUp(ctx, e)
	}
	return t, next, true, err
}

// moved records an arrival.
func (p *Phaser) moved(x *party, leaves bool) {
	p.mu.Lock()
	x.at, x.unsure, x.leaving = after(x.at), false, false
	p.mu.Unlock()
	if leaves {
		p.drop(func(y *party) bool { return x == y }, false)
	}
}

// move makes the transaction of an arrival. It returns how many parties have still to arrive, and how many have
// arrived. left is -1 if that is not known.
func (p *Phaser) move(ctx context.Context, e *zkconn.Epoch, x *party, leave bool) (left, arrived int, err error) {
	ops := []any{&zk.CheckVersionRequest{Path: p.wait(x.at), Version: -1}, &zk.DeleteRequest{Path: p.node(x), Version: -1}}
	if !leave {
		ops = append(ops, &zk.CreateRequest{Path: p.nextNode(x), Data: p.at.Owner(), Acl: p.at.ACL(), Flags: zk.FlagEphemeral})
	}
	// The writes to the directories come last, so their Stats are of the moment after the move.
	ops = append(ops, &zk.SetDataRequest{Path: p.arrivals(x.at), Version: -1},
		&zk.SetDataRequest{Path: p.arrivals(after(x.at)), Version: -1})
	// This is set before the request is sent. So if the answer is lost, the next attempt looks for the node first.
	x.unsure, x.leaving = true, x.leaving || leave
	call := e.StartMulti(ops...)
	if _, err := call.Wait(ctx, e); !call.Answered() {
		return -1, 0, err
	}
	res, err := call.Result() // used also if ctx ended at the very same time
	if err != nil {
		return -1, 0, err
	}
	here, next := res[len(res)-2].Stat, res[len(res)-1].Stat
	if here == nil || next == nil {
		return -1, 0, nil
	}
	return int(here.NumChildren), int(next.NumChildren), nil
}

// find looks for the node of a party that may have arrived.
func (p *Phaser) find(ctx context.Context, e *zkconn.Epoch, x *party) (place, error) {
	if err := record.Synced(ctx, e, p.base()); err != nil {
		return behind, err
	}
	// First the directory from which the party comes: its node moves only from there to the next one. So a node that
	// moves between the two reads is found by the second.
	if _, there, err := e.Exists(ctx, p.node(x)); there || err != nil {
		return behind, err
	}
	if _, there, err := e.Exists(ctx, p.nextNode(x)); there || err != nil {
		return ahead, err
	}
	return nowhere, nil
}

// whyRefused finds out why the servers refused an arrival. If there is no error, the party
// tries again, unless the phaser has terminated.
func (p *Phaser) whyRefused(ctx context.Context, e *zkconn.Epoch, x *party, at place) (state, error) {
	t, err := p.learn(ctx, e)
	switch {
	case err != nil || t.Terminated:
		return t, err
	case at == nowhere:
		p.drop(func(y *party) bool { return x == y }, true)
		return t, errDetached
	case t.Phase == x.at:
		return t, p.intact(ctx, e, t.Phase)
	case !before(t.Phase, x.at): // the phase is over: the next look for the node tells whether the party arrived
		return t, nil
	}
	// The party has arrived at the present phase. But that may be over, and nobody may have noticed it: the last
	// party that had to arrive has died, and no call waits.
	_, next, err := p.advanceIfDone(ctx, e, t.Phase)
	switch {
	case next != nil:
		t = *next
	case err == nil:
		err = errArrived
	}
	return t, err
}
