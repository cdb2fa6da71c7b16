package watch_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// Servers with a greater jute.maxbuffer store nodes that no client here takes.
func TestANodeThatIsTooLongFailsItsReadAndNothingElse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		srv, s := v.Server, v.Session()
		id, connections := s.ID(), srv.TotalConnections()
		lease := v.Lock(zksync.NewMutex(s, "/locks/a"))
		srv.Create("/app", nil, 0, 0)
		srv.Create("/app/small", []byte("x"), 0, 0)
		srv.Create("/app/big", bytes.Repeat([]byte("x"), 5<<20), 0, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		check := func(what string, err error) {
			require.ErrorContains(t, err, "more than this client takes, 4194304 bytes", what)
			require.ErrorContains(t, err, "/app/big", what)
			v.AtOnce(start, what)
			require.NoError(t, lease.Err(), what)
			require.Equal(t, id, s.ID(), what)
			require.Equal(t, connections, srv.TotalConnections(), what)
		}
		for _, err := range zkwatch.Data(ctx, s, "/app/big") {
			check("Data", err)
		}
		tree := zkwatch.NewTree(s, "/app")
		check("Tree", tree.Start(ctx))
		tree.Close()
		data, _, err := s.Conn().Get("/app/big")
		require.NoError(t, err, "the user may ask for it")
		require.Len(t, data, 5<<20)
		for st, err := range zkwatch.Data(ctx, s, "/app/small") {
			require.NoError(t, err, "the same connection goes on")
			require.Equal(t, "x", string(st.Data))
			break
		}
		require.NoError(t, lease.Unlock())
	})
}
