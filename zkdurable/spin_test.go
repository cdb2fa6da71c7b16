package zkdurable_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Servers that give the same useless answer again and again are asked some ten times a second at most.
func TestServersThatAlwaysAnswerTheSameAreNotAskedInASpin(t *testing.T) {
	const noNode = -101
	for name, c := range map[string]struct {
		op   zktest.Op
		code zktest.Code
		call func(ctx context.Context, m *zkdurable.Mutex, h *zkdurable.Hold) error
	}{
		"the base node does not exist, though it was made": {zktest.GetData, noNode, func(ctx context.Context, m *zkdurable.Mutex, _ *zkdurable.Hold) error {
			_, err := m.Lock(ctx, "b")
			return err
		}},
		"the hold's node does not exist, though it lasts": {zktest.SetWatches, noNode, func(ctx context.Context, m *zkdurable.Mutex, _ *zkdurable.Hold) error {
			_, err := m.Lock(ctx, "b")
			return err
		}},
		"no such directory, though it was made": {zktest.Multi, noNode, func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error {
			return h.SetNote(ctx, "note")
		}},
		"no such hold, though it lasts": {zktest.Multi, noNode, func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error {
			return h.Unlock(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				m := zkdurable.NewMutex(srv.Session(t), "/durable")
				h, err := zkdurable.NewMutex(srv.Session(t, zksync.WithName("holder")), "/durable").Lock(t.Context(), "a")
				require.NoError(t, err)
				weather.AsksWithPauses(t, srv, c.op, c.code, func(ctx context.Context) error { return c.call(ctx, m, h) })
			})
		})
	}
}
