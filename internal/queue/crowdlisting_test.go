package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Otherwise nobody begins the listing that an entry of an earlier session has put aside, and the entries that await it wait for ever.
func TestAnEntryOfAnEarlierSessionTakesNoListingFromOthers(t *testing.T) {
	c := new(Crowds)
	before, now := place{new(zkconn.Epoch), "/q"}, place{new(zkconn.Epoch), "/q"}
	awaited := c.plan(now)
	late := c.plan(before)
	c.leave(late)
	joined := c.plan(now)
	require.Same(t, awaited, joined)
	require.Equal(t, 2, joined.waiting)
	c.leave(joined)
	c.leave(joined)
	require.Empty(t, c.planned)
}
