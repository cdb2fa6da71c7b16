package session

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// How changes what a [Access.Run] does.
type How int

const (
	// Joined makes Close wait for f, so f must not call a function of the user.
	Joined How = 1 << iota
	// Lasting is for an f that must not end before it knows whether its requests were applied. Its context ends only when the
	// session closes; f itself ends soon after ctx has. While there is no ZooKeeper session, the end of ctx ends the call.
	Lasting
)

// Run runs f in the present ZooKeeper session. If that ends (f returns zkconn.ErrOver), it runs f again in the next one. f's
// context ends with ctx and when the session closes. Close does not wait for f, because f may call a function of the user,
// which may close the session.
//
// Run is the one place that turns the error of an attempt into the error for the caller: [node.Reason]. With an op it also
// names the operation and the path.
func (a *Access) Run(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error, how ...How) error {
	var flags How
	for _, h := range how {
		flags |= h
	}
	switch {
	case a.Settings.bad != nil:
		return a.Named(op, a.Settings.bad)
	case flags&Lasting == 0 && ctx.Err() != nil:
		return a.Named(op, errs.OfContext(ctx))
	case flags&Joined != 0:
		if !a.Begin() {
			return a.Named(op, errs.ErrClosed)
		}
		defer a.End()
	}
	ctx, cancel := a.Bounded(ctx)
	defer cancel()
	requests := ctx
	if flags&Lasting != 0 {
		requests, cancel = a.Bounded(context.WithoutCancel(ctx))
		defer cancel()
	}
	for pace, doubt := (node.Pace{}), false; ; {
		e, err := a.client.Epoch(ctx)
		if err == nil {
			err = a.begin(requests, e)
		}
		if err == nil {
			err = f(requests, e)
		}
		// The next session would have found out what an earlier one left open, had ctx not ended.
		if doubt = doubt || errs.Ambiguous(err); ctx.Err() != nil {
			err = errs.InDoubt(err, doubt)
		}
		switch {
		case err == nil:
			return nil
		case a.ctx.Err() != nil:
			return a.Named(op, errs.SameDoubt(err, errs.ErrClosed))
		case ctx.Err() != nil || !errors.Is(err, zkconn.ErrOver):
			return a.Named(op, node.Reason(ctx, err))
		}
		// The session ended: try again in the next one.
		_ = pace.Rest(ctx, e)
	}
}

// begin is what a call does first in each ZooKeeper session.
func (a *Access) begin(ctx context.Context, e *zkconn.Epoch) error {
	a.lookIfOpen(e)
	if a.kind == "" {
		return nil
	}
	return a.Look(ctx, e, a.kind)
}

// Named is err for the caller of the operation, unless op is empty or err names one already.
func (a *Access) Named(op string, err error) error {
	if op == "" {
		return err
	}
	return errs.Wrap(a.Package, op, a.Path, err)
}

// Bounded returns a context that ends with ctx, and also, with errs.ErrClosed
// as its cause, when the session closes. It has a trail of attempts of its own.
func (s *Session) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errs.ErrClosed) })
	return errs.WithTrail(ctx), func() {
		stop()
		cancel(nil)
	}
}

// bare is for requests that concern no primitive.
func (s *Session) bare() *Access { return &Access{Session: s, Package: "zksync", views: true} }

// Begin makes Close wait until End. After Close has begun it reports false. It is for
// a goroutine that also runs functions of the user, for which Close must not wait.
func (s *Session) Begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Closing() {
		return false
	}
	s.work.Add(1)
	return true
}

// End undoes Begin.
func (s *Session) End() { s.work.Done() }

// Spawn runs f in a goroutine for which Close waits. After Close has begun it does not run f, and reports false.
func (s *Session) Spawn(f func()) bool {
	if !s.Begin() {
		return false
	}
	go s.within(f)
	return true
}

// SpawnLate is Spawn, but it runs f also after Close has begun, for as long as Close can still wait for it, and later without that.
func (s *Session) SpawnLate(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joining {
		go f()
		return
	}
	s.work.Add(1)
	go s.within(f)
}

// AfterHolds keeps f until Close has ended all holds, and reports whether it does: only while Close ends them. No holder must
// wait for what f does.
func (s *Session) AfterHolds(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		s.afterHolds = append(s.afterHolds, f)
	}
	return s.ending
}

// RunHere is Spawn in this goroutine: it runs f and then returns.
func (s *Session) RunHere(f func()) bool {
	if !s.Begin() {
		return false
	}
	s.within(f)
	return true
}

func (s *Session) within(f func()) {
	defer s.End()
	f()
}
