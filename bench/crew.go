package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Locker is one client of a lock. It is used by one goroutine at a time.
type Locker interface {
	// Acquire returns when the lock is held. Once ctx is done it may fail.
	Acquire(ctx context.Context) error
	Release() error
}

// Crew is the clients of one slice.
type Crew struct {
	// Lockers each work in a goroutine of their own. If the scenario drains there is one more than clients: the first is
	// the holder behind which the others queue.
	Lockers []Locker
	// Step is there in place of Lockers where all clients together do one operation.
	Step func(ctx context.Context) error
	// Work is there in place of Lockers where the clients do different things. It goes on until over.
	Work func(ctx context.Context, over func() bool) (Sample, error)
	// Check finds out after the work whether so many operations have done what they should. It may be nil.
	Check func(ctx context.Context, ops int) error
	// Before is what goes before each Step and is not timed. What it sends is counted. It may be nil.
	Before func(ctx context.Context) error
	// Queued is how many hold or wait. Only a scenario that drains asks, and what it costs must not be counted.
	Queued func() (int, error)
	// Close ends the sessions. What was sent for an operation before counts as its cost.
	Close func()
}

// Site is where the clients of a slice meet, and the meter of what they send.
type Site struct {
	Slice
	Meter *Meter
	fail  context.CancelCauseFunc // ends the slice; it may be nil
}

// Dial opens a connection of a ZooKeeper client on which requests are counted: above TLS, or they could not be told.
func (at Site) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := (&net.Dialer{}).DialContext
	if config := at.Secured.TLS; config != nil {
		if f := at.Secured.Files; f != nil {
			var err error
			if config, err = f.Config(config); config == nil {
				return nil, err
			}
		}
		dial = (&tls.Dialer{Config: config}).DialContext
	}
	c, err := dial(ctx, network, address)
	if err != nil {
		if errors.Is(err, syscall.EMFILE) && at.fail != nil {
			// Client libraries would go on dialing until the slice is given up.
			at.fail(fmt.Errorf("raise the limit of open files (ulimit -n): %w", err))
		}
		return nil, err
	}
	return at.Meter.Wrap(c), nil
}

// Opener opens the clients of a slice. With an error it leaves none open. The end of ctx may end the clients, too.
type Opener func(ctx context.Context, at Site) (*Crew, error)

// NewPeer makes a peer that runs in this process of its openers, by the names of the scenarios.
func NewPeer(name string, openers map[string]Opener) Peer { return &inProcess{name, openers} }

type inProcess struct {
	name    string
	openers map[string]Opener
}

func (p *inProcess) Name() string { return p.name }

func (p *inProcess) Knows(scenario string) bool { return p.openers[scenario] != nil }

func (p *inProcess) Close() error { return nil }

// sliceGrace is how long the clients of a slice may take to connect, and then to finish
// what they are at. It only ends runs in which something hangs.
const sliceGrace = 30 * time.Second

// deepGrace is how long a slice that drains a queue may take: a peer whose cost grows with the square of the depth takes
// long.
const deepGrace = 5 * time.Minute

func (p *inProcess) Run(ctx context.Context, s Slice) (Sample, error) {
	limit := s.Duration + 2*sliceGrace
	if s.Scenario.Drains {
		limit = deepGrace
	}
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit.Round(time.Second)))
	defer stop()
	// An error of one client ends the slice, and with it the connections of those that may wait for what it holds.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	at := Site{s, &Meter{}, cancel}
	crew, err := p.openers[s.Scenario.Name](ctx, at)
	if err != nil {
		return Sample{}, cmp.Or(context.Cause(ctx), err)
	}
	err = at.prepare(ctx, crew)
	before := at.Meter.traffic()
	var result Sample
	if err == nil {
		began, _ := processCPU()
		result, err = at.work(ctx, cancel, crew)
		result.CPU = Uncounted
		if ended, ok := processCPU(); ok {
			result.CPU = ended - began
		}
	}
	if err == nil && crew.Check != nil {
		err = crew.Check(ctx, result.Ops)
	}
	crew.Close()
	// What a peer sends after an operation has returned is part of its cost too, so the
	// count ends only here. The end of a session itself is no request.
	result.Traffic = at.Meter.traffic().minus(before)
	return result, err
}

// prepare does what is not measured. The first step also makes what the others find, and somebody has to hold what others
// queue for.
func (at Site) prepare(ctx context.Context, crew *Crew) error {
	switch {
	case crew.Step != nil:
		_, err := crew.once(ctx)
		return err
	case at.Scenario.Drains:
		return crew.Lockers[0].Acquire(ctx)
	case at.Scenario.Name == Many:
		return rehearse(ctx, crew.Lockers)
	}
	return nil
}

func (at Site) work(ctx context.Context, cancel context.CancelCauseFunc, crew *Crew) (Sample, error) {
	if at.Scenario.Drains {
		return at.deep(ctx, cancel, crew)
	}
	w := &watch{cancel: cancel}
	defer context.AfterFunc(ctx, w.end)()
	defer time.AfterFunc(at.Duration, w.end).Stop()
	if at.Scenario.Local {
		w.every = clockEvery
	}
	switch {
	case crew.Step != nil:
		return w.steps(ctx, crew)
	case crew.Work != nil:
		return crew.Work(ctx, w.over.Load)
	}
	return w.all(ctx, crew.Lockers)
}

// clockEvery is how many local operations there are for one whose time is taken.
const clockEvery = 32

// watch takes the time of the clients of a slice and tells them when it is over.
type watch struct {
	over   atomic.Bool
	every  int // of so many operations the time of one is taken; 0 is 1
	cancel context.CancelCauseFunc
}

func (w *watch) end() { w.over.Store(true) }

// all runs all clients until the time is over and each has finished.
func (w *watch) all(ctx context.Context, clients []Locker) (Sample, error) {
	results := make([]Sample, len(clients))
	start := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			var err error
			if results[i], err = w.loop(ctx, c); err != nil {
				w.cancel(err)
			}
		})
	}
	wg.Wait()
	total := Sample{}
	for _, r := range results {
		total.add(r)
	}
	total.Elapsed = time.Since(start)
	return total, context.Cause(ctx)
}

func (w *watch) loop(ctx context.Context, c Locker) (s Sample, err error) {
	for s.Ops == 0 || !w.over.Load() { // a rate of none says nothing
		timed := w.every == 0 || s.Ops%w.every == 0
		var start time.Time
		if timed {
			start = time.Now()
		}
		if err := c.Acquire(ctx); err != nil {
			return s, fmt.Errorf("acquire: %w", err)
		}
		if timed {
			s.Latencies = append(s.Latencies, time.Since(start))
		}
		if err := c.Release(); err != nil {
			return s, fmt.Errorf("release: %w", err)
		}
		s.Ops++
	}
	return s, nil
}

// steps repeats an operation of all clients together until the time is over.
func (w *watch) steps(ctx context.Context, crew *Crew) (s Sample, err error) {
	for s.Ops == 0 || !w.over.Load() {
		took, err := crew.once(ctx)
		if err != nil {
			return s, err
		}
		s.Latencies = append(s.Latencies, took)
		s.Elapsed += took
		s.Ops++
	}
	return s, context.Cause(ctx)
}

// once is one operation of all clients together, and what goes before it.
func (c *Crew) once(ctx context.Context) (took time.Duration, err error) {
	if c.Before != nil {
		if err := c.Before(ctx); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err = c.Step(ctx)
	return time.Since(start), err
}
