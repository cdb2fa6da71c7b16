package zklatch

import (
	"context"
	"path"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
)

// Destroy removes the latch: the next use makes a closed one, also of an object that knows it open. While the latch is closed and
// has events of WithEphemeral, whose sessions live, the error is zksync.ErrMisuse. A Wait fails with zksync.ErrBroken.
// See docs/guarantees/calls.md.
func (l *Latch) Destroy(ctx context.Context) error {
	shut := ""
	if l.made().at.Misuse() == nil {
		shut = path.Base(l.closed())
	}
	err := l.at.Destroy(ctx, record.Ruin{
		Base: l.terms.Base, ACL: l.at.ACL(), What: "the latch", There: l.terms.There, Shut: shut,
		Part: func(child string) bool { return layout.IsPart(layout.Latch, child) },
		Uses: map[string]string{"counts": "of its events are those of sessions"},
	})
	if err == nil {
		l.forget()
	}
	return err
}
