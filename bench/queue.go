package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkqueue"
)

// Backlog is how many elements are in the queue of the scenario queue at most.
const Backlog = 64

// counter has all sessions add to one number, which must be exact at the end.
func counter(ctx context.Context, at Site) (*Crew, error) {
	all, crew, err := sessions(ctx, at, at.Clients)
	if err != nil {
		return nil, err
	}
	path := at.Path + "/number"
	for _, s := range all {
		crew.Lockers = append(crew.Lockers, adder{zkatomic.NewInt64(s, path)})
	}
	crew.Check = func(ctx context.Context, ops int) error {
		sum, err := zkatomic.NewInt64(all[0], path).Add(ctx, 0)
		if err == nil && sum != int64(ops) {
			err = fmt.Errorf("the number is %d after %d additions of one", sum, ops)
		}
		return err
	}
	return crew, nil
}

type adder struct{ number *zkatomic.Int64 }

func (a adder) Acquire(ctx context.Context) error {
	_, err := a.number.Add(ctx, 1)
	return err
}

func (adder) Release() error { return nil }

// pipe is the two ends of a queue, as a client sees them.
type pipe interface {
	put(ctx context.Context, v int64) error
	// receive acknowledges the element once it has called got.
	receive(ctx context.Context, got func(v int64) error) error
}

// queue gives each session an end of one queue: the first half puts, the others receive and acknowledge.
func queue(ctx context.Context, at Site) (*Crew, error) {
	all, crew, err := sessions(ctx, at, at.Clients)
	if err != nil {
		return nil, err
	}
	var pipes []pipe
	for _, s := range all {
		pipes = append(pipes, ours{zkqueue.New[int64](s, at.Path+"/queue")})
	}
	crew.Work = func(ctx context.Context, over func() bool) (Sample, error) { return flow(ctx, pipes, over) }
	return crew, nil
}

type ours struct{ queue *zkqueue.Queue[int64] }

func (q ours) put(ctx context.Context, v int64) error { return q.queue.Put(ctx, v) }

func (q ours) receive(ctx context.Context, got func(int64) error) error {
	d, err := q.queue.Receive(ctx)
	if err != nil {
		return err
	}
	if err := got(d.Value); err != nil {
		return err
	}
	return d.Ack(ctx)
}

// flow has the first half of the pipes put until the time is over, and the others receive as many elements. Each element is received
// once: a second time is an error, and an element that is lost has a consumer wait for ever.
func flow(ctx context.Context, pipes []pipe, over func() bool) (s Sample, err error) {
	producers, consumers := pipes[:len(pipes)/2], pipes[len(pipes)/2:]
	there := make(chan struct{}, Backlog)
	var sent sync.Map // when, by number
	var numbers atomic.Int64
	var mu sync.Mutex
	put := func(ctx context.Context, p pipe) error {
		for first := true; first || !over(); first = false {
			v := numbers.Add(1)
			sent.Store(v, time.Now())
			if err := p.put(ctx, v); err != nil {
				return fmt.Errorf("put: %w", err)
			}
			select {
			case there <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	receive := func(ctx context.Context, p pipe) error {
		for range there {
			var when any
			err := p.receive(ctx, func(v int64) (err error) {
				var known bool
				if when, known = sent.LoadAndDelete(v); !known {
					err = fmt.Errorf("element %d is received twice, or was never put", v)
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("receive: %w", err)
			}
			mu.Lock()
			s.Latencies = append(s.Latencies, time.Since(when.(time.Time)))
			mu.Unlock()
		}
		return nil
	}
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(there)
		return together(ctx, producers, put)
	})
	group.Go(func() error { return together(ctx, consumers, receive) })
	err = group.Wait()
	s.Ops, s.Elapsed = len(s.Latencies), time.Since(start)
	return s, err
}
