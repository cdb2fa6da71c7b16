// Package singleflight is golang.org/x/sync/singleflight for its own tests, with a Flight of this module in one session or, with the build
// tag "three", in three, which take the calls in turn.
package singleflight

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/testing/gosuite/play"
	"github.com/go-menagerie/menagerie/zkflight"
)

// Group is a Flight without contexts, whose results may have any type.
type Group struct {
	all [sessions]*zkflight.Flight[any]
}

// Result is what DoChan gives.
type Result = zkflight.Result[any]

// NewGroup gives the group a path.
func NewGroup() *Group {
	g, path := new(Group), play.Path()
	for i := range g.all {
		g.all[i] = zkflight.New[any](play.Session(i), path)
	}
	return g
}

func (g *Group) Do(key string, fn func() (any, error)) (any, error, bool) {
	return g.all[play.Turn(sessions)].Do(context.Background(), key, func(context.Context) (any, error) { return fn() })
}

func (g *Group) DoChan(key string, fn func() (any, error)) <-chan Result {
	return g.all[play.Turn(sessions)].DoChan(context.Background(), key, func(context.Context) (any, error) { return fn() })
}

func (g *Group) Forget(key string) {
	if err := g.all[play.Turn(sessions)].Forget(context.Background(), key); err != nil {
		panic(err)
	}
}
