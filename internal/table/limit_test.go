package table_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The servers take the version -1 for any. So it must not change between the read and the change: the gate is closed.
func TestAChangeAtAVersionThatCannotBeCheckedIsMadeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		tab := table.New(session.NewAccess("zksync", (*session.Session)(s), "/m", []zksync.Option(nil)), layout.Map)
		update := func() {
			require.NoError(t, tab.RunAt(t.Context(), "update", table.ToExist, table.Key{Text: "k"}, func(p *table.Place) error {
				return p.Change(true, func(table.Entry) (table.Decision, error) {
					return table.Decision{Do: table.Put, Data: []byte("x")}, nil
				})
			}))
		}
		update()
		tab.Saw(proving.Epoch(t, s), "k", -1)
		from := len(srv.Log())
		update()
		var closed, changed int
		for i, q := range srv.Log()[from:] {
			switch gate := slices.ContainsFunc(q.Paths, func(p string) bool { return strings.Contains(p, "/open-") }); {
			case q.Op == zktest.Multi && gate && slices.Contains(q.Ops, zktest.Delete):
				closed = i + 1
			case q.Op == zktest.Multi && gate && slices.Contains(q.Ops, zktest.SetData):
				changed = i + 1
			}
		}
		require.Positive(t, closed)
		require.Greater(t, changed, closed)
	})
}
