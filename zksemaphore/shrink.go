package zksemaphore

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Shrink releases n of the permits of l, a lease of Acquire, and returns the
// lease of the rest; l ends then. It blocks until the outcome is known, through
// disconnects. Until then all permits of l may count as held. If the servers refuse, ok is false
// and l is unchanged. After an error nothing is held: l
// was lost, or ctx ended, and then the rest is given up, too.
func (s *permits) Shrink(ctx context.Context, l *lease.Lease, n int64) (_ *lease.Lease, ok bool, err error) {
	old := l.Ticket()
	rest := old.Entry.Weight - n
	if err := l.Err(); err != nil {
		return nil, true, err
	}
	if rest <= 0 || n <= 0 || !old.Entry.Ordered() {
		return nil, false, nil // at the end of the numbers a new node would lose the place: see share.Readers.Downgrade
	}
	q, _ := s.request(rest)
	p := q.Successor(old)
	ctx, cancel := s.g.At().Session.Bounded(ctx)
	defer cancel()
	old.SetReplacing(true)
	data := node.Content{Owner: s.g.At().Content(node.Content{}).Owner, Since: l.Since(), Token: l.Token()}.Encode()
	sent, err := old.ReplaceBy(ctx, p, data)
	at, refused := p.Epoch.Connection(), false
	switch {
	case err == nil:
		next, err := s.g.Replace(l, p)
		return next, true, err
	case ctx.Err() == nil && !errors.Is(err, queue.ErrGone) && !errors.Is(err, zkconn.ErrOver):
		// Refused; but an earlier attempt without an answer may have been applied.
		_, there, lookErr := p.Epoch.Exists(ctx, p.Node)
		if lookErr == nil && there {
			next, err := s.g.Replace(l, p)
			return next, true, err
		}
		refused = lookErr == nil
	}
	if sent { // it may yet be applied, and nobody would remove the node of the rest
		p.Epoch.AmbiguousCreate(s.g.Queue().Dir, p.Entry.Name, at)
	}
	p.Forget()
	if refused {
		old.SetReplacing(false)
		return nil, false, nil
	}
	p.Epoch.Reap(zkconn.Orphan{Dir: s.g.Queue().Dir, Node: p.Node})
	_ = l.Unlock()
	return nil, true, node.Reason(ctx, err)
}
