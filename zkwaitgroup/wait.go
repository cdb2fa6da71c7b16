package zkwaitgroup

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Wait waits until no living member is left. Dead members count as done here; WaitContext reports them.
func (g *WaitGroup) Wait() {
	call := g.made().at.Call()
	err := g.WaitContext(context.Background())
	if !errors.As(err, new(*DeadMembersError)) {
		call.End(err)
	}
}

// WaitContext waits until no living member is left. If members died in that round, it returns a
// [DeadMembersError] that names them. Members may be added while it waits. If ctx ends, the error also names
// processes with members that are not done.
func (g *WaitGroup) WaitContext(ctx context.Context) error {
	round := int64(0)
	var dead *DeadMembersError
	missing := ""
	err := g.made().at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if err := g.at.Look(ctx, e, layout.WaitGroup); err != nil {
			return err
		}
		if round, err = g.untilOver(ctx, e, round); err != nil {
			missing = record.Glance(ctx, e, func(ctx context.Context) (string, error) { return g.missing(ctx, e) })
			return err
		}
		dead, err = g.deadOf(ctx, e, round)
		return err
	})
	if err == nil && dead != nil {
		err = dead
	}
	return errs.Wrap("zkwaitgroup", "wait", g.path, record.Saying(err, missing))
}

// untilOver waits until the round is over, and returns its zxid: 0 if there is none. round is the round in which the
// wait began, 0 at the beginning of the wait.
//
// It waits for the deletion of one node, which the last member that is done deletes, and which all waiters watch. But that
// member may die, and then no process deletes the node. So the wait also watches one living member: see record.Sentinel.
func (g *WaitGroup) untilOver(ctx context.Context, e *zkconn.Epoch, round int64) (int64, error) {
	for s := (record.Sentinel{}); ; {
		if err := e.Await(ctx); err != nil {
			return round, err
		}
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return round, err
		}
		alive, stat, err := g.listed(ctx, e, g.alive())
		// There is no round, or another one than that in which the wait began: the latter is over.
		if err != nil || stat.Czxid == 0 || round != 0 && stat.Czxid != round {
			return round, err
		}
		if round = stat.Czxid; len(alive) == 0 {
			if err := g.end(ctx, e, false); err != nil {
				return round, err
			}
			continue
		}
		// If another round has begun since alive was listed, the watched member has left, too, so this wait ends.
		_, news, err := s.Wait(ctx, e, []string{g.round()}, record.Pick(g.alive(), alive), e.Timeout())
		if err != nil || news == zkconn.Deleted || news == zkconn.NotFound {
			return round, err
		}
	}
}
