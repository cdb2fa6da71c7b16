package zkwaitgroup

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// WaitContext waits until no living member is left. If there is none, it returns at once. If members died in that
// round, it returns a [DeadMembersError] that names them. Members may be added while it waits.
//
// It blocks until the round ends or ctx ends (the error wraps the context's error, and names those who are not done). It
// waits through disconnects and lost sessions. If the session is closed, the error is zksync.ErrClosed. It costs three requests, and one at the end
// of the round. For any number of members it watches only the end of the round and one member at a time.
func (g *WaitGroup) WaitContext(ctx context.Context) error {
	round := int64(0)
	var dead *DeadMembersError
	missing := ""
	err := g.made().at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
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
	return errs.Wrap("wait", g.path, record.Saying(err, missing))
}

// missing names processes with members that are not done.
func (g *WaitGroup) missing(ctx context.Context, e *zkconn.Epoch) (string, error) {
	ids, _, err := g.listed(ctx, e, g.alive())
	if err != nil {
		return "", err
	}
	who, err := record.Call(ctx, e, g.members(), ids)
	what := "%d processes have members that are not done"
	if len(ids) == 1 {
		what = "%d process has members that are not done"
	}
	return who.Say(fmt.Sprintf(what, len(ids))), err
}

// untilOver waits until the round is over, and returns its zxid: 0 if there is none. round is the round in which the
// wait began, 0 at the beginning of the wait.
//
// It waits for the deletion of one node, which the last member that is done deletes, and which
// everybody watches. But that member may die, and then nobody deletes the node. So the wait also
// watches one living member: see record.Sentinel.
func (g *WaitGroup) untilOver(ctx context.Context, e *zkconn.Epoch, round int64) (int64, error) {
	for s := (record.Sentinel{}); ; {
		if err := e.Await(ctx); err != nil {
			return round, err
		}
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return round, err
		}
		alive, zxid, err := g.listed(ctx, e, g.alive())
		// There is no round, or another one than that in which the wait began: the latter is over.
		if err != nil || zxid == 0 || round != 0 && zxid != round {
			return round, err
		}
		if round = zxid; len(alive) == 0 {
			if err := g.end(ctx, e); err != nil {
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
