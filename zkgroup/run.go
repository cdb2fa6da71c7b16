package zkgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// An item whose function has failed is tried again after a pause, which doubles with each attempt.
const firstPause, longestPause = time.Second, time.Minute

func pauseAfter(attempt int) time.Duration {
	return min(firstPause<<min(attempt-1, 16), longestPause)
}

// update makes a change of what is known, and begins and ends runs accordingly.
func (a *assignment) update(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	ready := a.known && a.here != nil && a.parts.Has(a.m.id) && a.over == nil
	var share []string
	a.left, a.mine = 0, 0
	for i, it := range a.items {
		mine := ready && a.parts.Owns(a.m.id, i)
		if mine {
			share = append(share, it.name)
		}
		if !it.seen && !(it.done && it.recorded) {
			a.left++
		}
		if mine = mine && !it.done && !it.seen; mine {
			a.mine++
		}
		switch {
		case mine && it.cancel == nil:
			a.start(it)
		case !mine && it.cancel != nil && !it.done:
			it.cancel(a.reason(ready))
			it.cancel = nil
		}
	}
	a.look()
	if a.onShare != nil && ready && !(a.divided && slices.Equal(share, a.share)) {
		a.divided, a.share = true, share
		a.onShare(slices.Clone(share))
	}
}

// reason is why a run is to end. mu is held.
func (a *assignment) reason(ready bool) error {
	switch {
	case a.over != nil:
		return a.over
	case !ready:
		return errNotThere
	}
	return errMoved
}

// delay begins the pause before the next attempt of the items that have failed at other members. mu is held.
func (a *assignment) delay() {
	for i, it := range a.items {
		if n := a.parts.Attempts(i); n > it.attempt {
			it.attempt, it.after = n, time.Now().Add(pauseAfter(n))
		}
	}
}

// start runs an item, once an earlier run of it has ended. mu is held.
func (a *assignment) start(it *item) {
	ctx, cancel := context.WithCancelCause(a.user)
	it.cancel = cancel
	before, ended := it.ended, make(chan struct{})
	it.ended = ended
	here, round := a.here, a.round
	var place chan struct{}
	if a.places != nil && before == nil && !it.after.After(time.Now()) { // it could run now: then the order is that of the list
		place = a.places.ask()
	}
	a.running.Add(1)
	go func() {
		defer a.running.Done()
		defer close(ended)
		defer cancel(nil)
		if before != nil {
			<-before
		}
		if err := a.own(ctx, it, here, round, place); err != nil {
			a.fail(err)
		}
	}()
}

// own runs an item until it is done or ctx ends. It may have asked for a place already.
func (a *assignment) own(ctx context.Context, it *item, here *presence.Stay, round string, place chan struct{}) error {
	defer func() {
		if place != nil {
			a.places.quit(place)
		}
	}()
	for pace := (node.Pace{Free: 1}); a.due(ctx, it); {
		l, err := a.lease(ctx, it, place)
		place = nil
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		over, failure, err := a.under(ctx, it, l, here, round)
		attempt := 0
		if failure != nil {
			attempt, err = a.giveUp(l.Context(), it) // before the next owner has the lease
			a.tell(ctx, it, l, itemGiven, failure)
			a.g.at.Log().Once("item", a.g.at.Path).Warn("an item failed", "path", a.g.at.Path, "item", it.name, "attempt", attempt, "error", failure)
		}
		_ = l.Unlock() // it fails if the lease was lost, which f knows
		if a.places != nil {
			a.places.leave()
		}
		if failure != nil && a.onError != nil {
			if exited := calls(func() error { a.onError(it.name, attempt, failure); return nil }); exited != nil {
				return fmt.Errorf("the item %s: the function of WithItemErrors: %w", errs.Quote(it.name), exited)
			}
		}
		if over || err != nil {
			return err
		}
		_ = pace.Rest(ctx, nil)
	}
	return nil
}

// due waits until an item may be tried. It reports false if ctx has ended, or the item is done: an earlier run of it may have ended
// after this one was begun.
func (a *assignment) due(ctx context.Context, it *item) bool {
	if pause := a.pause(it); pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return ctx.Err() == nil && !it.done && !it.seen
}

// pause is how long it is until an item may be tried.
func (a *assignment) pause(it *item) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Until(it.after)
}

// giveUp announces to the other members that an item has failed here. When this member sees its announcement on the servers, as the
// others do, the item belongs to the member whose failure is the oldest.
func (a *assignment) giveUp(ctx context.Context, it *item) (attempt int, err error) {
	a.mu.Lock()
	it.attempt++
	attempt = it.attempt
	it.after = time.Now().Add(pauseAfter(attempt))
	a.failed[rounds.Hash(it.name)] = attempt
	a.mu.Unlock()
	err = a.p.Set(ctx, func() []byte {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.w.Data(a.failed)
	})
	if ctx.Err() != nil || a.p.Leaving().Err() != nil {
		err = nil // the data are written in the next session
	}
	return attempt, err
}

var errGoexit = errors.New("the function called runtime.Goexit")

// calls calls a function of the user in a goroutine of its own, because it may call runtime.Goexit.
func calls(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() { done <- err }()
		err = f()
	}()
	return <-done
}

// under runs an item once, under its lease, unless it is to be tried later. over means that it is done here. failure is the error of f.
func (a *assignment) under(ctx context.Context, it *item, l *zksync.Lease, here *presence.Stay, round string) (over bool, failure, err error) {
	running, end := (*lease.Lease)(l).Under(ctx)
	defer end()
	done, err := a.w.IsDone(running, here.Epoch, round, layout.NodeName(it.name))
	if running.Err() != nil || errors.Is(err, zkconn.ErrOver) {
		return false, nil, nil // the item moves, or the lease is lost
	}
	if err != nil {
		return false, nil, err
	}
	if !done && a.pause(it) > 0 { // it has just failed elsewhere
		return false, nil, nil
	}
	if !done {
		a.tell(running, it, l, itemGained, nil)
		err := calls(func() error { return a.f(running, it.name, l) })
		stop := new(stopped)
		switch {
		case errors.As(err, &stop):
			a.tell(running, it, l, itemGiven, nil)
			a.fail(stop)
			return true, nil, nil
		case errors.Is(err, errGoexit):
			a.tell(running, it, l, itemGiven, err)
			return true, nil, fmt.Errorf("the item %s: %w", errs.Quote(it.name), err) // it would exit again
		case err != nil && (running.Err() != nil || !l.Valid()): // f may see that the lease is lost before its context ends
			a.tell(running, it, l, itemGiven, nil)
			return false, nil, nil
		case err != nil:
			return false, err, nil
		}
	}
	a.mu.Lock()
	it.done, it.recorded = true, done
	a.mu.Unlock()
	if !done {
		a.tell(running, it, l, itemDone, nil)
		err = a.setDone(it)
	}
	a.did()
	return true, nil, err
}

// setDone records that an item is done, in the session of the newest worker's node. The run may have begun in an earlier
// one. If that session ends, too, enter records it in the next one.
func (a *assignment) setDone(it *item) error {
	life, end := a.g.at.Bounded(context.Background())
	defer end()
	for {
		a.mu.Lock()
		e, round := a.entered, a.round
		a.mu.Unlock()
		err := a.w.SetDone(life, e, round, layout.NodeName(it.name))
		a.mu.Lock()
		same := a.entered == e
		it.recorded = it.recorded || err == nil && a.round == round
		a.mu.Unlock()
		switch {
		case err != nil && !errors.Is(err, zkconn.ErrOver) && life.Err() == nil:
			return err
		case err == nil || same || life.Err() != nil:
			return nil
		}
	}
}
