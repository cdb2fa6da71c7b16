package table

import (
	"context"
	"strings"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
)

// Destroy removes the table, unless a change has its turn or waits for it. An entry may be the node of a session, so it looks at
// each; not in a set.
func (t *Table) Destroy(ctx context.Context) error {
	defer t.again() // the next call of this object looks whether there is a table
	return t.at.Destroy(ctx, record.Ruin{
		Base: t.terms.Base, ACL: t.at.ACL(), What: "the " + layout.Word(t.terms.Type), There: t.terms.There,
		Shut: record.Writers, Uses: map[string]string{"queue": "of its changes are under way"},
		Many: func(dir string) bool { return t.terms.Type == layout.Set && strings.HasPrefix(dir, "keys/") },
	})
}
