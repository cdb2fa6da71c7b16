package bench

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// deep lets the waiters queue one by one behind the first client, which holds. When all wait and nobody has anything more to send, the holder
// releases, and each waiter releases as soon as it is granted.
func (at Site) deep(ctx context.Context, cancel context.CancelCauseFunc, crew *Crew) (Sample, error) {
	holder, waiters := crew.Lockers[0], crew.Lockers[1:]
	granted := make(chan time.Time, len(waiters))
	var wg sync.WaitGroup
	defer func() {
		cancel(nil) // with an error the waiters wait for nothing
		wg.Wait()
	}()
	start, before := time.Now(), at.Meter.traffic()
	for i, w := range waiters {
		wg.Go(func() {
			if err := w.Acquire(ctx); err != nil {
				cancel(fmt.Errorf("acquire: %w", err))
				return
			}
			granted <- time.Now()
			if err := w.Release(); err != nil {
				cancel(fmt.Errorf("release: %w", err))
			}
		})
		if err := queued(ctx, crew, i+2); err != nil {
			return Sample{}, err
		}
	}
	s := Sample{QueueingElapsed: time.Since(start), Ops: len(waiters)}
	at.settle(ctx, before, 0)
	s.Queueing = at.Meter.traffic().minus(before)
	start = time.Now()
	if err := holder.Release(); err != nil {
		return Sample{}, fmt.Errorf("release: %w", err)
	}
	for last := start; len(s.Latencies) < len(waiters); {
		select {
		case now := <-granted:
			s.Latencies = append(s.Latencies, now.Sub(last))
			last = now
		case <-ctx.Done():
			return Sample{}, context.Cause(ctx)
		}
	}
	wg.Wait()
	s.Elapsed = time.Since(start)
	return s, context.Cause(ctx)
}

// queued returns when n clients hold or wait.
func queued(ctx context.Context, crew *Crew, n int) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got, err := crew.Queued()
		if err != nil {
			return fmt.Errorf("length of the queue: %w", err)
		}
		if got >= n {
			return nil
		}
	}
}

// quiet is how long nothing has been sent when the clients count as settled: what a client still has to ask it asks as soon
// as it has its last reply.
const (
	quiet    = 50 * time.Millisecond
	settling = 2 * time.Second // at most: a reply may be lost with its connection
)

// settle returns when the clients have sent least requests since the meter stood at from, have all replies, and have sent
// nothing for some time.
func (at Site) settle(ctx context.Context, from Traffic, least int64) {
	ticks := time.NewTicker(quiet)
	defer ticks.Stop()
	for last, began := at.Meter.traffic(), time.Now(); time.Since(began) < settling; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now := at.Meter.traffic()
		if now.Requests == last.Requests && now.Requests-from.Requests >= least && at.Meter.answered() {
			return
		}
		last = now
	}
}
