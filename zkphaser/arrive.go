package zkphaser

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// register registers n parties, one after the other. As soon as one of them is registered, the phase cannot end, so
// all of them are registered at the same phase.
func (p *Phaser) register(ctx context.Context, e *zkconn.Epoch, n int) (t state, err error) {
	p.detach(e)
	p.mu.Lock()
	t.Phase = p.phase
	p.mu.Unlock()
	if t.Phase < 0 || n == 0 {
		v, err := p.terms.ReadOrMake(ctx, e)
		if t = v.T; err != nil {
			return t, err
		}
	}
	turn := p.turn()
	defer turn.Leave()
	var made []*party
	for pace := (node.Pace{Free: 1}); err == nil && !t.Terminated && len(made) < n; {
		x, refused := p.enter(ctx, e, t.Phase)
		switch {
		case refused == nil:
			made = append(made, x)
			continue
		case !errors.As(refused, new(*node.Refused)) && !errors.Is(refused, node.ErrGone):
			err = refused
		default:
			turn.Refused()
			if err = turn.Take(ctx, e); err == nil {
				t, err = p.afterRefusal(ctx, e, t.Phase)
			}
			if err == nil {
				err = pace.Rest(ctx, e)
			}
		}
	}
	if err == nil && !t.Terminated {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.phase, p.parties, p.lost = t.Phase, append(p.parties, made...), p.lost && len(made) == 0
		return t, nil
	}
	for _, x := range made {
		p.remove(x)
	}
	return t, err
}

// enter makes the node of a party that has to arrive at a phase. The servers refuse it if the phaser is
// not in that phase, or is about to advance.
func (p *Phaser) enter(ctx context.Context, e *zkconn.Epoch, phase int) (*party, error) {
	name := ""
	_, err := node.Make(ctx, e, node.Spec{
		Dir: p.arrivals(phase), Name: func(uuid string) string { name = node.Prefix(uuid) + "-party"; return name },
		Data: p.at.Owner, ACL: p.at.ACL(), Flags: zk.FlagEphemeral,
		Before: func() []any {
			// The first node exists while the phaser is in the phase, and the second until it is about to advance.
			// Without the second check node.Make would make the directory again.
			return []any{&zk.CheckVersionRequest{Path: p.wait(phase), Version: -1},
				&zk.CheckVersionRequest{Path: p.arrivals(phase), Version: -1}}
		},
	})
	// ErrNodeExists: this very request had made the node, and arrived twice.
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	return &party{name: name, epoch: e, at: phase}, nil
}

// afterRefusal returns the state in which a party may be registered after a registration at a phase was refused. If
// the phaser is about to advance, afterRefusal waits for the advance.
func (p *Phaser) afterRefusal(ctx context.Context, e *zkconn.Epoch, phase int) (state, error) {
	t, err := p.found(ctx, e)
	if err != nil || t.Terminated || t.Phase != phase {
		return t, err
	}
	_, there, err := e.Exists(ctx, p.arrivals(phase))
	switch {
	case err != nil:
		return t, err
	case there:
		return t, p.intact(ctx, e, phase)
	}
	return p.await(ctx, e, phase)
}

// detach forgets the parties of sessions before that of e. It leaves those of a later session: another call may
// have registered them before this call came here.
func (p *Phaser) detach(e *zkconn.Epoch) {
	p.drop(func(x *party) bool { return x.epoch.Number() < e.Number() }, true)
}

// drop forgets parties. lost means that they were lost with their session: the next arrival reports that.
func (p *Phaser) drop(which func(*party) bool, lost bool) (dropped []*party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.parties {
		if which(x) {
			dropped = append(dropped, x)
		}
	}
	p.parties = slices.DeleteFunc(p.parties, which)
	p.lost = p.lost || lost && len(dropped) > 0
	return dropped
}

// remove has the node of a party removed. An arrival of the party may be under way, which moves the node from the
// first directory to the second. So the node is removed from the first directory first: after that an arrival that
// has not been applied finds nothing to move.
func (p *Phaser) remove(x *party) (done <-chan struct{}) {
	p.mu.Lock()
	at := x.at
	p.mu.Unlock()
	from, next := p.arrivals(at), p.arrivals(after(at))
	gone := x.epoch.Reap(zkconn.Orphan{Dir: from, Node: from + "/" + x.name})
	return x.epoch.Reap(zkconn.Orphan{Dir: next, Pending: gone, Outcome: func() (string, bool) { return next + "/" + x.name, false }})
}

// clear removes what a phaser that has terminated in a phase does not need any more: our own parties, and the directories,
// unless parties of others are in them.
func (p *Phaser) clear(e *zkconn.Epoch, phase int) {
	var gone []<-chan struct{}
	for _, x := range p.drop(func(*party) bool { return true }, false) {
		gone = append(gone, p.remove(x))
	}
	p.mu.Lock()
	p.lost = false
	p.mu.Unlock()
	done := make(chan struct{})
	if p.at.Spawn(func() {
		defer close(done)
		_ = p.at.Run(context.Background(), "", func(ctx context.Context, e *zkconn.Epoch) error {
			for _, removed := range gone {
				select {
				case <-removed:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			for _, dir := range []string{p.arrivals(phase), p.arrivals(after(phase))} {
				_ = e.Delete(ctx, dir)
			}
			return nil
		})
	}) {
		node.Settle(e, done, node.Grace)
	}
}

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
	err = p.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
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
	t, err := p.look(ctx, "")
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
	nowhere              // the party was deregistered, or its node was removed externally
)

// arriveOnce makes a party arrive, unless it has arrived already, and makes the phaser advance if the party
// is the last. t is the phase at which it arrived, or that of a phaser that has terminated. next is the state after an
// advance that this call made.
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
			err = node.ErrAgain
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
			err = ctx.Err()
		}
	}
	p.moved(x, leave || at == nowhere)
	switch {
	case err != nil:
	case left == 0:
		next, err = p.advance(ctx, e, t.Phase, registered)
	case left < 0: // no answer showed how many are left
		now, failed := p.learn(ctx, e)
		if next, err = &now, failed; err == nil && !now.Terminated {
			_, next, err = p.advanceIfDone(ctx, e, now.Phase)
		}
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
	case !before(t.Phase, x.at): // the phase is over: the next look for the node shows whether the party arrived
		return t, nil
	}
	// The party has arrived at the present phase. But that may be over, and no call may have noticed it: the last party
	// that had to arrive has died, and no call waits.
	_, next, err := p.advanceIfDone(ctx, e, t.Phase)
	switch {
	case next != nil:
		t = *next
	case err == nil:
		err = errArrived
	}
	return t, err
}
