package zkonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// kept is the outcome on the servers, nil without one. As long as its watch says nothing,
// it is known without asking.
func (o *Once) kept(ctx context.Context) (r *outcome, err error) {
	if err := o.door.Misuse(); err != nil {
		return nil, err
	}
	o.mu.Lock()
	r = o.known
	o.mu.Unlock()
	if r != nil {
		return r, ctx.Err()
	}
	err = o.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		r, err = o.ask(ctx, e)
		return err
	})
	return r, err
}

// ask reads the outcome, through disconnects.
func (o *Once) ask(ctx context.Context, e *zkconn.Epoch) (*outcome, error) {
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		r, err := o.read(ctx, e)
		if !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
			return r, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, err
		}
	}
}

// pause is that before a read that got no usable answer is repeated.
const pause = 5 * time.Millisecond

func (o *Once) read(ctx context.Context, e *zkconn.Epoch) (*outcome, error) {
	node := o.door.Full(o.result())
	// Watched before it is read: what is read is remembered until the watch says
	// otherwise. The watch of a node that does not exist is none.
	stale := make(chan struct{}, 1)
	w, err := e.Watch(ctx, node, func(zkconn.News) { stale <- struct{}{}; o.forget() })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, _, err := e.Get(ctx, node)
	if err != nil {
		w.Stop()
		if errors.Is(err, zk.ErrNoNode) {
			return nil, nil
		}
		return nil, err
	}
	r := new(outcome)
	if err := json.Unmarshal(data, r); err != nil {
		w.Stop()
		return nil, fmt.Errorf("%w: node %s is not a result of this package: %w", zksync.ErrMisuse, o.result(), err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(stale) == 0 {
		o.known = r
	}
	return r, nil
}

// forget has the outcome read again. It is called by watches and must not block.
func (o *Once) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = nil
}
