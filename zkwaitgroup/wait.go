package zkwaitgroup

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// untilOver waits until the round is over, and returns its zxid: 0 if there is none. round is
// that in which the wait began, 0 at its beginning.
//
// What is waited for is the deletion of one node that everybody watches, and that who is done
// last deletes. But the last one may die, and then nobody does. So the wait watches one living
// member as well, a random one, and looks again when that leaves: it need not know of the
// others, because if the round is over, that one has left too. It looks again after a pause
// that grows, so that a thousand members who leave in the worst order do not wake it a thousand
// times.
func (g *WaitGroup) untilOver(ctx context.Context, e *zkconn.Epoch, round int64) (int64, error) {
	for s := (record.Sentinel{}); ; {
		if err := e.Await(ctx); err != nil {
			return round, err
		}
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return round, err
		}
		alive, zxid, err := g.listed(ctx, e, g.alive())
		if err != nil || zxid == 0 || round != 0 && zxid != round {
			return round, err
		}
		if round = zxid; len(alive) == 0 {
			if err := g.end(ctx, e); err != nil {
				return round, err
			}
			continue
		}
		// If another round has begun since the listing, the member has left, too.
		_, news, err := s.Wait(ctx, e, []string{g.round()}, record.Pick(g.alive(), alive), e.Timeout())
		if err != nil || news == zkconn.Deleted || news == zkconn.NotFound {
			return round, err
		}
	}
}
