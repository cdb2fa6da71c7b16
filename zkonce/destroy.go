package zkonce

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Destroy removes the result and all other nodes: the next caller runs its function again. While a call runs its function,
// or waits for one, the error is zksync.ErrMisuse. See docs/guarantees/calls.md.
func (o *Once) Destroy(ctx context.Context) error {
	base := o.made().at.Full(o.at.Path)
	defer o.known.Forget()
	return o.at.Destroy(ctx, record.Ruin{
		Base: base, ACL: o.at.ACL(), What: "the once",
		There: func(ctx context.Context, e *zkconn.Epoch) (bool, error) {
			err := record.Synced(ctx, e, base)
			var names []string
			if err == nil {
				names, _, err = e.Children(ctx, base)
			}
			if err == zk.ErrNoNode {
				err = nil
			}
			return len(names) > 0, err
		},
		Part: func(child string) bool { return layout.IsPart(layout.Once, child) },
		Uses: map[string]string{"lock": "of its calls run the function, or wait"},
	})
}

// Destroy removes the promise; objects that know the value forget it. A Wait in another process is no use: it fails with
// zksync.ErrBroken, or waits for the next promise of the path. See docs/guarantees/calls.md.
func (p *Promise[T]) Destroy(ctx context.Context) error {
	err := p.made().at.Destroy(ctx, record.Ruin{
		Base: p.terms.Base, ACL: p.at.ACL(), What: "the promise", There: p.terms.There, Shut: record.Writers,
	})
	if err == nil {
		p.forget()
	}
	return err
}
