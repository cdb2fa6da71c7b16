package main

import (
	"context"

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
