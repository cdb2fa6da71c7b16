package zkwaitgroup

import (
	"context"
	"errors"
	"slices"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// settle finds out whether a transaction was made whose answer was lost, or that was refused,
// perhaps because it had been made already. Every record is written by its own WaitGroup, but
// for the numbers of others, which each writes for itself; so the number that was to be written
// tells.
func (g *WaitGroup) settle(ctx context.Context, e *zkconn.Epoch, p *plan) (made bool, err error) {
	if p.made || len(p.edits) == 0 {
		return p.made, nil
	}
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return false, err
	}
	d := p.edits[0]
	r, err := g.read(ctx, e, d.id)
	if err != nil {
		return false, err
	}
	switch {
	case r != nil && d.h != nil:
		made = r.N == d.now.N
	case r != nil:
		made = r.Taken[g.id] == d.now.Taken[g.id]
	case d.old == nil:
		made = false
	default:
		if made, err = g.settleGone(ctx, e, p, &d); err != nil {
			return false, err
		}
	}
	if made {
		p.booked(g, nil)
	}
	return made, nil
}

// settleGone is settle for a record that is gone: we removed it, or whoever ended its round.
func (g *WaitGroup) settleGone(ctx context.Context, e *zkconn.Epoch, p *plan, d *edit) (made bool, err error) {
	_, round, err := g.listed(ctx, e, g.alive())
	switch {
	case err != nil:
		return false, err
	case d.h == nil:
		// Nobody removes a record from which somebody took before the round is over. With the
		// round over it was made, or does not matter any more.
		return round != p.round, nil
	case round != 0 && (round == d.h.round || d.h.round == 0 && round == p.round): // nobody else removes it
		return d.removes(), nil
	}
	v, _, err := g.readVerdict(ctx, e)
	if err != nil {
		return false, err
	}
	if dead := v.find(d.id); dead != nil {
		return dead.Own == d.now.N, nil
	}
	// The round is over. So an Add was not made, or it would not be. A Done was made, or does
	// not matter any more, unless the servers said that there was no such round, or no such
	// record in a new one: then others had taken all that there was. For a request that had
	// been made already they said something else.
	if d.now.N > d.old.N {
		return false, nil
	}
	r := p.refused
	return r == nil || !errors.Is(r, zk.ErrNoNode) || r.Index > 0 && round == 0, nil
}

// refresh reads our own record.
func (g *WaitGroup) refresh(ctx context.Context, e *zkconn.Epoch) error {
	h := g.own
	if h == nil {
		return nil
	}
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return err
	}
	r, alive, round, err := g.readWithLife(ctx, e, h.id)
	if err != nil {
		return err
	}
	switch {
	case r == nil:
		h.forget()
		g.own = nil
	case r.left() > 0 && !slices.Contains(alive, h.id): // somebody removed it by hand: they are dead
		h.spare = -1
		g.lost, g.own = append(g.lost, h), nil
	default:
		h.rec, h.known, h.round = *r, true, round
		if r.left() > 0 {
			h.guard(g)
		} else {
			h.stale.Store(false)
		}
	}
	return nil
}

// readWithLife reads a record and who lives, as of one moment: the node in alive comes and goes in transactions that write
// the record.
func (g *WaitGroup) readWithLife(ctx context.Context, e *zkconn.Epoch, id string) (r *account, alive []string, round int64, err error) {
	for pace := (node.Pace{Free: 1}); ; {
		if r, err = g.read(ctx, e, id); err != nil {
			return nil, nil, 0, err
		}
		if alive, round, err = g.listed(ctx, e, g.alive()); err != nil || r == nil {
			return r, alive, round, err
		}
		again, err := g.read(ctx, e, id)
		if err != nil || again != nil && again.version == r.version {
			return r, alive, round, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, nil, 0, err
		}
	}
}

// excuse counts calls of Done for members of a session that is over, and whose record is gone.
// If they were reported dead, their Done calls change nothing; if others said that they are
// done, ours are for somebody else's.
func (g *WaitGroup) excuse(ctx context.Context, e *zkconn.Epoch, p *plan, h *holding, n int) (int, error) {
	if h.spare < 0 {
		v, _, err := g.readVerdict(ctx, e)
		if err != nil {
			return n, err
		}
		h.spare = v.reported(h.id, h.rec.left())
	}
	excused := min(n, h.spare)
	p.excused = append(p.excused, func() {
		if h.spare -= excused; h.spare == 0 {
			h.forget()
			g.lost = slices.DeleteFunc(g.lost, func(l *holding) bool { return l == h })
		}
	})
	return n - excused, nil
}

// forgive decides about a Done when nobody is left who could be done. If members died in the
// round that ended last, it may be for one of them, whoever had added it; otherwise it is one
// too many.
func (g *WaitGroup) forgive(ctx context.Context, e *zkconn.Epoch, round int64) error {
	if round == 0 {
		dead, err := g.report(ctx, e, 0)
		if err != nil || dead != nil {
			return err
		}
	}
	return errNegative
}
