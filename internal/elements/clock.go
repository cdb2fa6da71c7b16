package elements

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// clock is what is known of the leader's clock. That is the clock by which elements are delayed: those of producers and
// consumers may differ.
type clock struct {
	e     *zkconn.Epoch
	then  int64     // what it showed, in milliseconds
	since time.Time // not before that
}

// believed is how long the clocks are taken to go at the same speed.
const believed = time.Minute

// now tells what the leader's clock shows now, at least. ok is false if that has to be asked.
func (c *clock) now(e *zkconn.Epoch) (now int64, ok bool) {
	if c == nil || c.e != e || time.Since(c.since) > believed {
		return 0, false
	}
	return c.then + time.Since(c.since).Milliseconds(), true
}

// slow is from when on an answer with the time is too old: it waited for a connection, or for a server that lags. With such a time
// every element would come late.
const slow = 250 * time.Millisecond

// known returns the clock. It asks the leader at most once a minute, and once more after a slow answer: what delayed that is
// mostly over.
func (q *Queue) known(ctx context.Context, e *zkconn.Epoch) (*clock, error) {
	q.mu.Lock()
	c := q.clock
	q.mu.Unlock()
	if _, ok := c.now(e); ok {
		return c, nil
	}
	c, took, err := q.ask(ctx, e)
	if err == nil && took > slow {
		c, _, err = q.ask(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	q.set(c)
	return c, nil
}

// set notes what the clock shows.
func (q *Queue) set(c *clock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clock = c
}

// ask asks the leader for the time. It also tells how long that took.
func (q *Queue) ask(ctx context.Context, e *zkconn.Epoch) (c *clock, took time.Duration, err error) {
	start := time.Now()
	res, err := record.Transact(ctx, e, &zk.SetDataRequest{Path: q.dir("writers"), Version: -1})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, 0, errRemoved
	case err != nil:
		return nil, 0, err
	case len(res) != 1 || res[0].Stat == nil:
		return nil, 0, errors.New("the servers gave no time")
	}
	now := time.Now()
	return &clock{e, res[0].Stat.Mtime, now}, now.Sub(start), nil
}
