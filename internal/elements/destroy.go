package elements

import (
	"context"
	"slices"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
)

// Destroy removes the queue with all elements and dead letters, unless one is being delivered, or a call waits.
func (q *Queue) Destroy(ctx context.Context) error {
	defer q.terms.Forget() // the next call of this object makes the nodes again
	persistent := []string{"elements", layout.DeadLetters}
	return q.at.Destroy(ctx, record.Ruin{
		Base: q.terms.Base, ACL: q.at.ACL(), What: "the queue", There: q.terms.There, Shut: record.Writers,
		Uses: map[string]string{
			"claims": "of its elements are being delivered", "takers": "of its calls wait for an element", "putters": "of its calls wait for room",
		},
		Many: func(dir string) bool { return slices.Contains(persistent, dir) },
	})
}
