// Package tree is what is at a path, and below it, for people: the State of each type, and plain nodes.
package tree

import (
	"context"
	"errors"
	"time"

	reads "github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Look is one look at a part of the tree. What is called with its context watches what it reads, too.
type Look struct {
	Of *zksync.Session
	reads.Look
}

// Looking calls f with a look, and calls it again in the next session if the session is lost.
func Looking(ctx context.Context, s *zksync.Session, f func(context.Context, *Look) error) error {
	inner := (*session.Session)(s)
	access := session.NewAccess[session.Option]("zksync", inner, "/menagerie", nil) // the path does not matter here
	return access.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		l := &Look{s, reads.Look{Session: inner, Epoch: e, Frame: new(reads.Frame)}}
		return f(l.In(ctx), l)
	})
}

// At reads a node and the names of its children; nil if there is none.
func (l *Look) At(ctx context.Context, p string) (*reads.Node, error) {
	return l.Node(ctx, l.Session.Full(p))
}

// Follow calls show with a look at the servers. It calls show again when something that show has read
// changes, at most once every pause. If again is false, it calls show once.
func Follow(ctx context.Context, s *zksync.Session, pause time.Duration, again bool, show func(context.Context, *Look) error) error {
	return Looking(ctx, s, func(ctx context.Context, l *Look) error {
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
