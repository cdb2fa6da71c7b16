package zkbarrier

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// untilOver waits until the round is over, and returns its zxid: 0 if there is none. round is that in which the wait
// began, 0 at its beginning.
//
// What is waited for is the deletion of one node that everybody watches, and that who is done last deletes. But the last one may
// die, and then nobody does. So the wait watches one living member as well, a random one, and looks again when that
// leaves: it need not know of the others, because if the round is over, that one has left too. It looks again
// after a pause that grows, so that a thousand members who leave in the worst order do not wake it a thousand times.
func (g *WaitGroup) untilOver(ctx context.Context, e *zkconn.Epoch, round int64) (int64, error) {
	for look := lookPause; ; look = min(2*look, max(e.Timeout()/3, lookPause)) {
		if err := e.Await(ctx); err != nil {
			return round, err
		}
		if err := synced(ctx, e, g.base()); err != nil {
			return round, err
		}
		// Watched before it is listed: what the listing shows cannot have ended unheard.
		w := watchBoth(e, g.round())
		alive, zxid, err := g.listed(ctx, e, g.alive())
		if err == nil && (zxid == 0 || round != 0 && zxid != round) {
			w.stop()
			return round, nil
		}
		if round = zxid; err == nil && len(alive) == 0 {
			err = g.end(ctx, e)
		} else if err == nil {
			w.also(g.life(alive[rand.N(len(alive))]))
			err = w.wait(ctx, e, look)
		}
		w.stop()
		if err != nil {
			return round, err
		}
	}
}

// lookPause is the first pause between the departure of a member and a look at the others. Mostly the
// end of the round comes right behind it.
const lookPause = 10 * time.Millisecond

// vigil watches the node whose deletion ends a wait, and a sentinel: another node, whose deletion may have been
// that of the last one who could have deleted the first.
type vigil struct {
	e        *zkconn.Epoch
	end      chan zkconn.News
	sentinel chan zkconn.News
	watches  []*zkconn.Watch
}

// watchBoth begins a vigil over the node that ends it; see also for the other one.
func watchBoth(e *zkconn.Epoch, end string) *vigil {
	v := &vigil{e: e, end: make(chan zkconn.News, 1), sentinel: make(chan zkconn.News, 1)}
	v.watches = e.WatchAll([]string{end}, func(_ string, n zkconn.News) { v.end <- n }, nil)
	return v
}

// also watches the sentinel.
func (v *vigil) also(sentinel string) {
	v.watches = append(v.watches, v.e.WatchAll([]string{sentinel}, func(_ string, n zkconn.News) { v.sentinel <- n }, nil)...)
}

func (v *vigil) stop() {
	for _, w := range v.watches {
		w.Stop()
	}
}

// wait returns when there is news of the end, or look after there is some of the sentinel, or when nothing
// was heard for a session timeout.
func (v *vigil) wait(ctx context.Context, e *zkconn.Epoch, look time.Duration) error {
	t := time.NewTimer(max(e.Timeout(), time.Millisecond))
	defer t.Stop()
	sentinel := v.sentinel
	for {
		select {
		case <-v.end:
			return nil
		case n := <-sentinel:
			if n == zkconn.Cut {
				return nil
			}
			sentinel = nil
			t.Reset(look)
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.Over():
			return zkconn.ErrOver
		}
	}
}
