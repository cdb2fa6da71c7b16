package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// deepQueue is the waiters of a slice that is one queue, and what becomes of them.
type deepQueue struct {
	at      Site
	crew    *Crew
	cancel  context.CancelCauseFunc
	waiters []Locker
	granted chan grant
	running sync.WaitGroup

	mu    sync.Mutex
	lost  int // waiters of the scenario Fleet that lost their places
	first error
}

type grant struct {
	when time.Time
	err  error
}

// deep lets the waiters queue behind the first client, which holds: one by one, or all at the same instant. When all wait and none has
// anything more to send, the holder releases, and each waiter releases as soon as it is granted.
func (at Site) deep(ctx context.Context, cancel context.CancelCauseFunc, crew *Crew) (Sample, error) {
	q := &deepQueue{at: at, crew: crew, cancel: cancel, waiters: crew.Lockers[1:], granted: make(chan grant, len(crew.Lockers)-1)}
	defer func() {
		cancel(nil) // with an error the waiters wait for nothing
		q.running.Wait()
	}()
	enter := q.enterOneByOne
	if at.Scenario.Together {
		enter = q.enterTogether
	}
	start, before := time.Now(), at.Meter.traffic()
	entered, err := enter(ctx, before)
	if err != nil {
		return Sample{}, q.explain(err)
	}
	s := Sample{QueueingElapsed: entered.Sub(start), Queueing: at.Meter.traffic().minus(before)}
	start = time.Now()
	if err := crew.Lockers[0].Release(); err != nil {
		return Sample{}, fmt.Errorf("release: %w", err)
	}
	if err := q.drain(ctx, start, &s); err != nil {
		return Sample{}, q.explain(err)
	}
	s.Elapsed = time.Since(start)
	return s, q.explain(context.Cause(ctx))
}

func (q *deepQueue) enterOneByOne(ctx context.Context, before Traffic) (time.Time, error) {
	at := make(chan struct{})
	close(at)
	for i, w := range q.waiters {
		q.begin(ctx, w, at)
		for {
			n, err := q.missing(ctx, i+1)
			if err != nil {
				return time.Time{}, err
			}
			if n <= 0 {
				break
			}
		}
	}
	entered := time.Now()
	q.at.settle(ctx, before, 0, 0)
	return entered, nil
}

// enterTogether returns when the last waiter had its last reply: what it asks after it is in the queue is part of entering it. The queue is
// counted only when all are quiet, or the count would slow the waiters down.
func (q *deepQueue) enterTogether(ctx context.Context, before Traffic) (entered time.Time, err error) {
	at := make(chan struct{})
	for _, w := range q.waiters {
		q.begin(ctx, w, at)
	}
	close(at)
	for missing := len(q.waiters); missing > 0 && err == nil; {
		entered = q.at.settle(ctx, before, int64(len(q.waiters)), q.proofs())
		missing, err = q.missing(ctx, len(q.waiters))
	}
	return entered, err
}

// proofs is more than the sessions of a fleet send in a moment of silence: each sends one request in a third of its timeout, or fewer.
func (q *deepQueue) proofs() int64 {
	if q.at.Scenario.Name != Fleet {
		return 0
	}
	return int64(2 * len(q.waiters) * int(3*quiet) / int(q.at.Timeout))
}

// begin has a waiter acquire and release at that instant.
func (q *deepQueue) begin(ctx context.Context, w Locker, at <-chan struct{}) {
	q.running.Go(func() {
		<-at
		err := w.Acquire(ctx)
		q.granted <- grant{time.Now(), err}
		verb := "acquire"
		if err == nil {
			verb, err = "release", w.Release()
		}
		if err != nil {
			q.failed(fmt.Errorf("%s: %w", verb, err))
		}
	})
}

// failed ends the slice. In a fleet the others go on, so that it is known how many fail.
func (q *deepQueue) failed(err error) {
	if q.at.Scenario.Name != Fleet || errors.Is(err, errTooMany) {
		q.cancel(err)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost++; q.lost == 1 {
		q.first = err
	}
}

// explain returns err with the number of waiters that lost their places.
func (q *deepQueue) explain(err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost == 0 {
		return err
	}
	return errors.Join(fmt.Errorf("%d of %d sessions lost their places, the first: %w", q.lost, len(q.waiters), q.first), err)
}

// missing returns how many of n waiters are not yet in the queue behind the holder, or have lost their places.
func (q *deepQueue) missing(ctx context.Context, n int) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	got, err := q.crew.Queued()
	if err != nil {
		return 0, fmt.Errorf("length of the queue: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return n + 1 - got - q.lost, nil
}

// drain returns when all waiters have released.
func (q *deepQueue) drain(ctx context.Context, last time.Time, s *Sample) error {
	for range q.waiters {
		select {
		case g := <-q.granted:
			if g.err == nil {
				s.Latencies = append(s.Latencies, g.when.Sub(last))
				s.Ops++
				last = g.when
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	q.running.Wait()
	return nil
}

// quiet is how long nothing has been sent when the clients count as settled: what a client still has to ask it asks as soon as it has its
// last reply.
const quiet = 50 * time.Millisecond

// settle returns when the clients have sent least requests since the meter stood at from, and from when on they have had all replies and have sent
// nothing for some time. Many sessions never fall silent: so many requests are their proofs of life.
func (at Site) settle(ctx context.Context, from Traffic, least, proofs int64) (since time.Time) {
	ticks := time.NewTicker(quiet / 10)
	defer ticks.Stop()
	since = time.Now()
	for base := at.Meter.requests.Load(); ; {
		select {
		case <-ctx.Done():
			return since
		case <-ticks.C:
		}
		now := at.Meter.requests.Load()
		switch {
		case now-base > proofs || at.Meter.unanswered() > proofs || now-from.Requests < least:
			since, base = time.Now(), now
		case time.Since(since) >= quiet:
			return since
		}
	}
}
