package cell

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
)

// Destroy removes the cell, unless a call has its turn or waits for it.
func (c *Cell) Destroy(ctx context.Context) error {
	return c.At.Destroy(ctx, record.Ruin{
		Base: c.base, ACL: c.At.ACL(), What: "the " + layout.Word(c.terms.Type), There: c.terms.There,
		Shut: record.Writers, Uses: map[string]string{"queue": "of its changes are under way"},
	})
}
