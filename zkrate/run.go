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
	l.settle()
	l.joined = make(chan struct{})
	l.mu.Unlock()
	if err == nil && l.bucket.unused(time.Now()) == 0 { // a call came while it left
		_, err = l.run()
	}
	if err != nil {
		l.bucket.fail(err)
	}
}

// settle wakes the calls that wait until the limiter has joined. mu is held.
func (l *Limiter) settle() {
	select {
	case <-l.joined:
	default:
		close(l.joined)
	}
}

func (l *Limiter) settled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
}

// unsettled has calls wait again until the limiter has joined.
func (l *Limiter) unsettled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	l.joined = make(chan struct{})
}

// lastFailure is why the present run has got no further; nil if it knows none.
func (l *Limiter) lastFailure() error {
	l.mu.Lock()
	trail := l.trail
	l.mu.Unlock()
	return l.at.LastFailure(trail)
}

// in is a run in one session. If nodes of the record were removed externally, it begins again.
func (l *Limiter) in(ctx context.Context, e *zkconn.Epoch) error {
	// The share is a lease: from here on the session ends unless the leader of the servers is known to count it as alive.
	independent, err := e.Depend(ctx)
	if err != nil {
		return err
	}
	defer independent()
	defer e.OnOver(func(error) { l.bucket.end(e) }).Stop()
	for pace := (node.Pace{Free: 1}); ; {
		err := l.once(ctx, e)
		l.bucket.end(e)
		l.unsettled()
		if !errors.Is(err, errAgain) {
			return err
		}
		l.terms.Forget()
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// once is a run in one session, as long as nothing is removed externally.
func (l *Limiter) once(ctx context.Context, e *zkconn.Epoch) error {
	known, err := l.terms.ReadOrMake(ctx, e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.seen = true
	l.mu.Unlock()
	if l.limit == rate.Inf {
		l.bucket.begin(e, true, nil)
		l.settled()
		return l.unlimited(ctx, e)
	}
	m := newMember(l, e, known.T.First)
	if !l.at.Remember(m) {
		return errs.ErrClosed
	}
	defer l.at.Forget(m)
	defer m.blind()
	l.bucket.begin(e, false, func() { m.tell(&m.news.demanded) })
	if err := m.enter(ctx); err != nil {
		return err
	}
	l.settled()
	return m.live(ctx)
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
