package zklatch_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// As in zksync: servers that give the same useless answer again and again are asked some ten times a second at most
// once it is clear that they do.
func TestServersThatAlwaysAnswerTheSameAreNotAskedInASpin(t *testing.T) {
	const noNode = -101
	calls := map[string]struct {
		op   zktest.Op
		call func(ctx context.Context, s *zksync.Session) error
	}{
		"the base node does not exist, though it was made": {zktest.GetData, func(ctx context.Context, s *zksync.Session) error {
			return zklatch.New(s, "/latch", 2).Wait(ctx)
		}},
		"no such directory, though it was made": {zktest.Multi, func(ctx context.Context, s *zksync.Session) error {
			return zklatch.New(s, "/latches/a", 2).Wait(ctx)
		}},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				s := srv.Session(t)
				weather.AsksWithPauses(t, srv, c.op, noNode, func(ctx context.Context) error { return c.call(ctx, s) })
			})
		})
	}
}
