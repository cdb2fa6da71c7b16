package zkconn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

func TestTheEndOfASessionIsASentinelOfTheFaceAlsoUntranslated(t *testing.T) {
	require.ErrorIs(t, zkconn.ErrOver, errs.ErrSessionExpired)
	require.ErrorIs(t, zkconn.ErrClosed, errs.ErrClosed)
}
