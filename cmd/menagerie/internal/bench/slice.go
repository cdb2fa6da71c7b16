package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// sliceGrace is how long the clients of a slice may take to connect, and then to finish
// what they are at. It only ends runs in which something hangs.
const sliceGrace = 30 * time.Second

var errHangs = errors.New("no answer within 30s")

// sample is what one or more slices of a peer have measured.
type sample struct {
	ops       int
	elapsed   time.Duration
	latencies []time.Duration // of the acquisitions
	requests  int64
}

func (s *sample) add(o sample) {
	s.ops += o.ops
	s.elapsed += o.elapsed
	s.latencies = append(s.latencies, o.latencies...)
	s.requests += o.requests
}

// runSlice has n clients acquire and release for d. Each finishes the operation that it is
// at when the time is over, and the time that takes counts.
func runSlice(ctx context.Context, open opener, at site, n int, d time.Duration) (sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d+2*sliceGrace, errHangs)
	defer cancel()
	at.meter = &meter{}
	clients, err := openAll(ctx, open, at, n)
	if err != nil {
		closeAll(clients)
		return sample{}, err
	}
	before := at.meter.requests.Load()
	result, err := work(ctx, clients, d)
	closeAll(clients)
	// What a peer sends after an operation has returned is part of its cost too, so the
	// count ends only here. The end of a session itself is not counted.
	result.requests = at.meter.requests.Load() - before
	return result, err
}

// openAll opens n clients at once; also with an error it returns those that are open.
func openAll(ctx context.Context, open opener, at site, n int) ([]client, error) {
	clients, errs := make([]client, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { clients[i], errs[i] = open(ctx, at) })
	}
	wg.Wait()
	return clients, errors.Join(errs...)
}

func closeAll(clients []client) {
	var wg sync.WaitGroup
	for _, c := range clients {
		if c != nil {
			wg.Go(c.close)
		}
	}
	wg.Wait()
}

// work runs all clients until d is over and each has finished.
func work(ctx context.Context, clients []client, d time.Duration) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]sample, len(clients))
	start := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			var err error
			if results[i], err = loop(ctx, c, start.Add(d)); err != nil {
				cancel(err) // the others may wait for what this client holds
			}
		})
	}
	wg.Wait()
	total := sample{}
	for _, r := range results {
		total.add(r)
	}
	total.elapsed = time.Since(start)
	return total, context.Cause(ctx)
}

func loop(ctx context.Context, c client, until time.Time) (sample, error) {
	var s sample
	for (s.ops == 0 || time.Now().Before(until)) && ctx.Err() == nil { // a rate of none says nothing
		start := time.Now()
		if err := c.acquire(ctx); err != nil {
			return s, fmt.Errorf("acquire: %w", err)
		}
		s.latencies = append(s.latencies, time.Since(start))
		if err := c.release(); err != nil {
			return s, fmt.Errorf("release: %w", err)
		}
		s.ops++
	}
	return s, nil
}
