package zkphaser

import (
	"context"
	"errors"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
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
		v, err := p.terms.Read(ctx, e)
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
		p.own(t.Phase, made)
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
		Data: p.at.Owner, ACL: p.at.ACL(), Flags: zk.FlagEphemeral, Plain: &p.plain,
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

// own records parties that were registered at a phase.
func (p *Phaser) own(phase int, some []*party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
	if len(some) > 0 {
		p.parties, p.lost = append(p.parties, some...), false
	}
}

// detach forgets the parties of sessions before that of e. It leaves those of a later session: another call may
// have registered them before this call came here.
func (p *Phaser) detach(e *zkconn.Epoch) {
	p.drop(func(x *party) bool { return x.epoch.Number() < e.Number() }, true)
}

// drop forgets parties. lost tells that they were lost with their session: the next arrival reports that.
func (p *Phaser) drop(which func(*party) bool, lost bool) (dropped []*party) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parties = slices.DeleteFunc(p.parties, func(x *party) bool {
		if !which(x) {
			return false
		}
		dropped = append(dropped, x)
		return true
	})
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

// clear removes what nobody needs any more when the phaser has terminated in a phase: our own parties, and the
// directories, unless somebody else's parties are in them.
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
		_ = p.at.In(context.Background(), func(ctx context.Context, e *zkconn.Epoch) error {
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
