package zkwaitgroup

import (
	"context"
	"math/rand/v2"
	"time"

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
	for look := record.LookPause; ; {
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
		ended, left, err := vigil(ctx, e, g.round(), g.life(alive[rand.N(len(alive))]), look)
		if ended || err != nil {
			return round, err
		}
		if left {
			look = min(2*look, max(e.Timeout()/3, record.LookPause))
		}
	}
}

// vigil watches the node whose deletion ends a wait, and a sentinel: another node, whose
// deletion may have been that of the last one who could have deleted the first. It returns at
// once when the first is gone, look after the sentinel has changed, and when nothing was heard
// for a session timeout.
func vigil(ctx context.Context, e *zkconn.Epoch, end, sentinel string, look time.Duration) (ended, left bool, err error) {
	over, gone := make(chan zkconn.News, 1), make(chan zkconn.News, 1)
	watches := e.WatchAll([]string{end, sentinel}, func(path string, n zkconn.News) {
		if path == end {
			over <- n
		} else {
			gone <- n
		}
	}, nil)
	defer func() {
		for _, w := range watches {
			w.Stop()
		}
	}()
	t := time.NewTimer(max(e.Timeout(), time.Millisecond))
	defer t.Stop()
	for {
		select {
		case n := <-over:
			return n == zkconn.Gone || n == zkconn.Missing, left, nil
		case n := <-gone:
			if n == zkconn.Cut {
				return false, left, nil
			}
			left = true
			t.Reset(look)
		case <-t.C:
			return false, left, nil
		case <-ctx.Done():
			return false, left, context.Cause(ctx)
		case <-e.Over():
			return false, left, zkconn.ErrOver
		}
	}
}
