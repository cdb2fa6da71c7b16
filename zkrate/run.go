package zkrate

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// A limiter that was not used for so long leaves, if its bucket is full: it loses nothing by that, and costs nothing any more.
const unusedFor = time.Minute

// failPause is the least time between two attempts of a limiter that fails.
const failPause = time.Second

// keep is one run: from the first call until the limiter was not used for some time, the session closes, or an error.
func (l *Limiter) keep() {
	trail := errs.WithTrail(context.Background())
	l.mu.Lock()
	l.trail = trail
	l.mu.Unlock()
	err := l.at.Run(trail, "", l.in)
	if err == nil && l.at.Closing() {
		err = errs.ErrClosed
	}
	if err != nil && !errors.Is(err, errs.ErrClosed) {
		l.at.Log().Once("rate", l.at.Path).Warn("a rate limiter allows nothing", "path", l.at.Path, "error", err)
	}
	l.mu.Lock()
	l.running, l.failed, l.again = false, err, time.Now().Add(failPause)
	l.mu.Unlock()
	if err == nil && l.bucket.unused(time.Now()) == 0 { // a call came while it left
		err = l.run()
	}
	if err != nil {
		l.bucket.fail(err)
	}
}

// lastFailure is why the present run has got no further; nil if it knows none.
func (l *Limiter) lastFailure() error {
	l.mu.Lock()
	trail := l.trail
	l.mu.Unlock()
	return l.at.LastFailure(trail)
}

// in is a run in one session. If nodes of the record were removed externally, it begins again; with a base node that lacks the others
// it cannot.
func (l *Limiter) in(ctx context.Context, e *zkconn.Epoch) error {
	// The share is a lease: from here on the session ends unless the leader of the servers is known to count it as alive.
	independent, err := e.Depend(ctx)
	if err != nil {
		return err
	}
	defer independent()
	defer e.OnOver(func(error) { l.bucket.end(e) }).Stop()
	for pace, vain := (node.Pace{Free: 1}), 0; ; {
		joined, err := l.once(ctx, e)
		if vain++; joined {
			pace, vain = node.Pace{Free: 1}, 0
		}
		switch {
		case !errors.Is(err, errAgain):
			return err
		case vain == 3:
			return errRemoved
		}
		l.terms.Forget()
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// once is a run in one session, as long as nothing is removed externally.
func (l *Limiter) once(ctx context.Context, e *zkconn.Epoch) (joined bool, err error) {
	defer l.bucket.end(e)
	known, err := l.terms.ReadOrMake(ctx, e)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	l.seen = true
	l.mu.Unlock()
	if l.limit == rate.Inf {
		l.bucket.begin(e, true, nil, 0, 0, 0)
		return true, l.unlimited(ctx, e)
	}
	m := newMember(l, e, known.T.First)
	if !l.at.Remember(m) {
		return false, errs.ErrClosed
	}
	defer l.at.Forget(m)
	defer m.blind()
	if err = m.enter(ctx); err == nil {
		err = m.live(ctx)
	}
	switch {
	case ctx.Err() != nil: // by Close
		m.Finish(nil)
	case err != nil: // what failed must not keep a share as long as the session lives
		l.bucket.end(e)
		e.Reap(zkconn.Orphan{Dir: l.processes(), Node: l.process(m.id)})
	}
	return m.joined, err
}

// unlimited is a run without a limit, which needs only the session.
func (l *Limiter) unlimited(ctx context.Context, e *zkconn.Epoch) error {
	t := time.NewTicker(unusedFor)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			if l.bucket.unused(now) >= unusedFor {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Over():
			return zkconn.ErrOver
		}
	}
}
