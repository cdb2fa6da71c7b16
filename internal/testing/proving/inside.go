package proving

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Access is what a recipe at path has of a session.
func Access(s *zksync.Session, path string) *session.Access {
	return session.NewAccess[session.Option]("zksync", (*session.Session)(s), path, nil)
}

// Epoch is the present ZooKeeper session of s.
func Epoch(t *testing.T, s *zksync.Session) (e *zkconn.Epoch) {
	t.Helper()
	require.NoError(t, Access(s, "/any").Run(t.Context(), "", func(_ context.Context, now *zkconn.Epoch) error { e = now; return nil }))
	return e
}
