package main

import (
	"context"
	"errors"
	"time"

	reads "github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// look is one look at a part of the tree. What is called with its context watches what it reads, too.
type look struct {
	s *zksync.Session
	reads.Look
}

// looking calls f with a look, and calls it again in the next session if the session is lost.
func looking(ctx context.Context, s *zksync.Session, f func(context.Context, *look) error) error {
	inner := (*session.Session)(s)
	access := session.NewAccess[session.Option]("zksync", inner, "/menagerie", nil) // the path does not matter here
	return access.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		l := &look{s, reads.Look{Session: inner, Epoch: e, Frame: new(reads.Frame)}}
		return f(l.In(ctx), l)
	})
}

// node reads a node and the names of its children; nil if there is none.
func (l *look) node(ctx context.Context, p string) (*reads.Node, error) {
	return l.Node(ctx, l.Session.Full(p))
}

// redraw is the shortest time between two frames of --watch.
const redraw = 100 * time.Millisecond

// follow calls show with a look at the servers. It calls show again when something that show has read
// changes, at most once every pause. If again is false, it calls show once.
func follow(ctx context.Context, s *zksync.Session, pause time.Duration, again bool, show func(context.Context, *look) error) error {
	return looking(ctx, s, func(ctx context.Context, l *look) error {
		for {
			if again {
				l.Changed = make(chan struct{}, 1)
			}
			err := show(ctx, l)
			switch {
			case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
				// The watches are not set again if the connection was lost meanwhile.
				if err := l.Epoch.Await(ctx); err != nil {
					return err
				}
			case err != nil || !again:
				return err
			default:
				select {
				case <-l.Changed:
				case <-l.Epoch.Over():
					return zkconn.ErrOver
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			l.Stop()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// rest waits for d, and reports whether ctx lives.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
