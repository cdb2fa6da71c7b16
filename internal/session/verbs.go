package session

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// In, Until and Within are the old forms of Run, for callers that are yet to be moved.

func (a *Access) In(ctx context.Context, f func(context.Context, *zkconn.Epoch) error) error {
	return a.Run(ctx, "", f)
}

func (a *Access) Until(ctx context.Context, f func(context.Context, *zkconn.Epoch) error) error {
	return a.Run(ctx, "", f, Lasting)
}

func (s *Session) In(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	return s.bare().Run(ctx, "", f, Joined)
}

func (s *Session) Within(f func()) bool {
	if !s.Begin() {
		return false
	}
	s.within(f)
	return true
}
