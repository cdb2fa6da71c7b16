package zkflight

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// heed looks out for a Forget while the function runs here and others of this process join:
// they must not be kept waiting for it. Without them nobody needs to know. It ends when the
// function that it returns is called.
func (p *passenger[T]) heed(ctx context.Context, s sight, aboard int) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.c.joined:
		case <-ctx.Done():
			return
		}
		err := p.f.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
			for pause := listenAfter; ; pause = min(2*pause, time.Second) {
				changed, err := p.watchKey(ctx, e, s.version)
				if changed || err != nil && !again(err) {
					return err
				}
				if err := node.Sleep(ctx, e, pause); err != nil {
					return err
				}
			}
		})
		if err == nil {
			p.f.divide(p.c, p.key, aboard)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// watchKey waits until the key's directory has another version, or reports false when the
// connection is lost.
func (p *passenger[T]) watchKey(ctx context.Context, e *zkconn.Epoch, version int32) (changed bool, err error) {
	if err := e.Await(ctx); err != nil {
		return false, err
	}
	dir := p.f.door.Full(p.dir)
	news := make(chan zkconn.News, 1)
	w, err := e.Watch(ctx, dir, func(n zkconn.News) { news <- n })
	if err != nil {
		return false, err
	}
	defer w.Stop()
	_, now, err := p.f.generationOf(ctx, e, p.dir)
	if err != nil || now != version {
		return err == nil, err
	}
	select {
	case n := <-news:
		return n == zkconn.Changed, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-e.Over():
		return false, zkconn.ErrOver
	}
}
