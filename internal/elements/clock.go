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

// known is the clock as it was asked last, if that tells the time. It costs one request a minute, if anybody needs it.
func (q *Queue) known(ctx context.Context, e *zkconn.Epoch) (*clock, error) {
	q.mu.Lock()
	c := q.clock
	q.mu.Unlock()
	if _, ok := c.now(e); ok {
		return c, nil
	}
	return q.ask(ctx, e)
}

// ask asks the leader for the time.
func (q *Queue) ask(ctx context.Context, e *zkconn.Epoch) (*clock, error) {
	res, err := record.Transact(ctx, e, &zk.SetDataRequest{Path: q.dir("writers"), Version: -1})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, errRemoved
	case err != nil:
		return nil, err
	case len(res) != 1 || res[0].Stat == nil:
		return nil, errors.New("the servers gave no time")
	}
	c := &clock{e, res[0].Stat.Mtime, time.Now()}
	q.mu.Lock()
	q.clock = c
	q.mu.Unlock()
	return c, nil
}
