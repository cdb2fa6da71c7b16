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

// follow does what follows an arrival: an advance, if nobody is left. It returns what the
// phaser is in then, nil if it is not known to have advanced.
func (p *Phaser) follow(ctx context.Context, e *zkconn.Epoch, phase, left, registered int) (next *turn, err error) {
	if left < 0 { // nobody told
		left, registered, err = p.countAt(ctx, e, phase)
	}
	if err != nil || left != 0 {
		return nil, err
	}
	return p.advance(ctx, e, phase, registered)
}

// countAt counts who has still to arrive at a phase, and who has; left is -1 if the phase is over,
// about to be, or if nobody has ever been registered in it.
func (p *Phaser) countAt(ctx context.Context, e *zkconn.Epoch, phase int) (left, arrived int, err error) {
	if err := record.Synced(ctx, e, p.base()); err != nil {
		return -1, 0, err
	}
	here, there, err := e.Exists(ctx, p.arrivals(phase))
	if err != nil || !there || here.NumChildren == 0 && here.Cversion == 0 {
		return -1, 0, err
	}
	next, _, err := e.Exists(ctx, p.arrivals(after(phase)))
	return int(here.NumChildren), children(next), err
}

// advance has the phaser advance from a phase at which nobody is left to arrive, and returns
// what it is in then. It returns nil if somebody else has had it advance or terminate, or was
// registered first, or runs the action.
func (p *Phaser) advance(ctx context.Context, e *zkconn.Epoch, phase, registered int) (next *turn, err error) {
	if p.onAdvance != nil {
		return p.act(ctx, e, phase)
	}
	ops := []any{&zk.DeleteRequest{Path: p.arrivals(phase), Version: -1}}
	if registered == 0 { // is still true: somebody may have been registered and have arrived since
		ops = append(ops, &zk.DeleteRequest{Path: p.arrivals(after(phase)), Version: -1})
	}
	return p.turnTo(ctx, e, turn{after(phase), registered == 0}, ops...)
}

// turnTo makes the transaction of an advance, with what it has to begin with. It returns what
// the phaser is in then, or nil if it was refused, because somebody else was quicker.
func (p *Phaser) turnTo(ctx context.Context, e *zkconn.Epoch, to turn, ops ...any) (*turn, error) {
	from := (to.phase - 1) & math.MaxInt32
	ops = append(ops, &zk.SetDataRequest{Path: p.base(), Data: p.encode(to), Version: -1})
	if to.ended {
		ops = append(ops, &zk.DeleteRequest{Path: p.open(), Version: -1}) // before wait: see await
	}
	ops = append(ops, &zk.DeleteRequest{Path: p.wait(from), Version: -1})
	if !to.ended {
		ops = append(ops, &zk.CreateRequest{Path: p.wait(to.phase), Acl: p.at.ACL()},
			&zk.CreateRequest{Path: p.arrivals(after(to.phase)), Acl: p.at.ACL()})
	}
	_, err := record.Transact(ctx, e, ops...)
	switch {
	case err == nil:
		p.heard(to.phase)
		if to.ended {
			p.clear(e, to.phase)
		}
		return &to, nil
	case record.Conflict(err):
		// Perhaps by ourselves: the answer to the first of several tries was lost.
		t, err := p.learnNow(ctx, e)
		if err == nil && t.ended {
			p.clear(e, t.phase)
		}
		return nil, err
	}
	return nil, err
}

// heard notes the phase that the phaser is in.
func (p *Phaser) heard(phase int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
}

// await waits until the phaser has advanced from a phase, and returns what it is in then.
//
// One event ends it: whoever makes the phaser advance deletes wait. When it terminates, open is
// deleted before, in the same transaction; the servers tell of both in that order, so no read
// is needed to know which it was. That the last who was to arrive has died nobody tells. So if
// it takes long, one of those who have still to arrive is watched, a random one: when the phase
// is over, that one has left.
func (p *Phaser) await(ctx context.Context, e *zkconn.Epoch, phase int) (turn, error) {
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
		end, news, err := s.Wait(ctx, e, ends, sentinel, quiet)
		switch {
		case err != nil:
			return turn{}, err
		case end == ends[1] && news == zkconn.Deleted:
			p.heard(after(phase))
			return turn{phase: after(phase)}, nil
		}
		if t, err := p.learnNow(ctx, e); err != nil || t.ended || t.phase != phase {
			if t.ended {
				p.clear(e, t.phase)
			}
			return t, err
		}
		next := (*turn)(nil)
		if sentinel, next, err = p.advanceIfDone(ctx, e, phase); err != nil {
			return turn{}, err
		}
		if next != nil {
			return *next, nil
		}
	}
}

// advanceIfDone looks at who has still to arrive, and has the phaser advance if nobody has: then it
// returns what it is in. Otherwise it returns a node to watch, "" without one.
func (p *Phaser) advanceIfDone(ctx context.Context, e *zkconn.Epoch, phase int) (sentinel string, next *turn, err error) {
	names, _, err := e.Children(ctx, p.arrivals(phase))
	gone := errors.Is(err, zk.ErrNoNode)
	switch {
	case err != nil && !gone:
		return "", nil, err
	case len(names) > 0:
		return record.Pick(p.arrivals(phase), names), nil, nil
	case gone && p.onAdvance == nil:
		return "", nil, nil // it has advanced meanwhile
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
	if gone { // whoever had begun has died
		next, err = p.act(ctx, e, phase)
	} else {
		next, err = p.follow(ctx, e, phase, -1, 0)
	}
	return "", next, err
}
