package zkonce_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zktest"
)

// Servers that give the same useless answer again and again are asked some ten times a second at most.
func TestServersThatAlwaysAnswerTheSameAreNotAskedAboutAPromiseInASpin(t *testing.T) {
	const noNode = -101
	for name, op := range map[string]zktest.Op{"the base node does not exist, though it was made": zktest.GetData, "no such directory, though it was made": zktest.Multi} {
		for _, complete := range []bool{false, true} {
			if complete && op == zktest.GetData {
				continue // it need not read
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Run(t)
					p := zkonce.NewPromise[int](srv.Session(t), "/promises/a")
					weather.AsksWithPauses(t, srv, op, noNode, func(ctx context.Context) (err error) {
						if complete {
							_, err = p.Complete(ctx, 1)
						} else {
							_, err = p.Wait(ctx)
						}
						return err
					})
				})
			})
		}
	}
}
