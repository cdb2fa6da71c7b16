package zkgroup

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// look ends an Assign with WithUntilDone when all is done, and follows the record of the round once this member has done its share.
// mu is held.
func (a *assignment) look() {
	switch {
	case !a.until || a.round == "" || a.over != nil:
		return
	case a.left == 0:
		a.fail(Stop(nil))
		return
	case !a.known || a.mine == 0 && a.looking == a.round:
		return
	}
	if a.unlook != nil {
		a.unlook()
		a.unlook, a.looking = nil, ""
	}
	if a.mine > 0 {
		return
	}
	ctx, cancel := context.WithCancel(a.live)
	a.looking, a.unlook = a.round, cancel
	dir := a.w.Dir(a.round)
	a.running.Go(func() {
		for l, err := range follow.Children(ctx, a.g.at, dir) {
			if err != nil {
				if ctx.Err() == nil {
					a.fail(err)
				}
				return
			}
			missing := a.learn(dir, l.Names)
			// Each listing has all names. The more are missing, the fewer listings: if one is, there is one when it is done. But what is missing
			// may all be done at any time.
			select {
			case <-time.After(min(time.Duration(missing-1)*time.Millisecond, time.Second/2)):
			case <-ctx.Done():
			}
		}
	})
}

// learn notes which items are done, by the names in the directory of a round, and returns how many are not.
func (a *assignment) learn(dir string, names []string) (missing int) {
	done := rounds.Done(names)
	a.update(func() {
		if a.w.Dir(a.round) != dir {
			return
		}
		for _, it := range a.items {
			it.seen = it.seen || done[layout.NodeName(it.name)]
			if !it.seen {
				missing++
			}
		}
	})
	return missing
}

// catchUp learns what is done before this member gets items of one that has gone. One listing is cheaper than to lock what is done already.
func (a *assignment) catchUp(ctx context.Context) error {
	a.mu.Lock()
	round, over := a.round, a.over
	a.mu.Unlock()
	if !a.until || round == "" || over != nil {
		return nil
	}
	return a.g.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		names, _, err := e.Children(ctx, a.w.Dir(round))
		if err == nil {
			a.learn(a.w.Dir(round), names)
		}
		if errors.Is(err, zk.ErrNoNode) { // the round has ended
			err = nil
		}
		return err
	})
}

// did is called when an item is done here. It counts down, and has update count when that may matter.
func (a *assignment) did() {
	a.mu.Lock()
	a.mine--
	a.left--
	last := a.mine <= 0 || a.left <= 0
	a.mu.Unlock()
	if last {
		a.update(func() {})
	}
}

// allDone notes that the servers have the record of all items.
func (a *assignment) allDone() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, it := range a.items {
		it.seen, it.recorded = true, true
	}
	a.fail(Stop(nil))
}
