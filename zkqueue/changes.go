package zkqueue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// changes tells the first in line that the children of a directory have changed.
type changes struct {
	e       *zkconn.Epoch
	watches map[string]*zkconn.Watch // the newest ones, by directory
	used    chan string
}

func newChanges(e *zkconn.Epoch) *changes {
	return &changes{e: e, watches: map[string]*zkconn.Watch{}, used: make(chan string, 16)}
}

// watch lists a directory and sees to it that its next change ends wait.
func (c *changes) watch(ctx context.Context, dir string) ([]string, *zk.Stat, error) {
	if w := c.watches[dir]; w != nil { // one that is used up, or has told nothing: another directory has changed
		w.Stop()
		delete(c.watches, dir)
	}
	var w *zkconn.Watch
	var l zkconn.Listing
	err := record.Insist(ctx, c.e, func() (err error) {
		w, l, err = c.e.WatchChildren(ctx, dir, func(zkconn.Event) {
			select {
			case c.used <- dir:
			default: // wait returns for any of those that are there
			}
		})
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, errRemoved
	}
	if err != nil {
		return nil, nil, err
	}
	c.watches[dir] = w
	return l.Names, l.Stat, nil
}

// wait waits for a change, or for d if that is not 0. Changes of the same transaction are told together.
func (c *changes) wait(ctx context.Context, d time.Duration) error {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-c.used:
	case <-due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.e.Over():
		return zkconn.ErrOver
	}
	for {
		select {
		case <-c.used:
		default:
			return c.e.Await(ctx)
		}
	}
}

func (c *changes) stop() {
	for _, w := range c.watches {
		w.Stop()
	}
}
