package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// enterIn puts an entry at the tail of the queue: one round trip. It reports alone
// when the entry is the only child of the directory, which grants all that can be
// granted at all: nobody else is in the queue, and nobody can get ahead of us any more. old is given up
// whatever comes.
func (q *Queue) enterIn(ctx context.Context, e *zkconn.Epoch, old *Ticket) (t *Ticket, alone bool, err error) {
	c := q.Config
	if c == nil {
		return q.enterOnce(ctx, e, old)
	}
	for pace := (node.Pace{}); ; {
		if err := c.Learn(ctx, e); err != nil {
			return nil, false, err
		}
		if !c.Fits(q.Weight) {
			return nil, false, ErrTooBig
		}
		t, alone, err = q.enterOnce(ctx, e, old)
		if err == nil && t.first {
			if err = c.Founded(ctx, e); err != nil {
				t.Leave(node.Grace)
				return nil, false, err
			}
		}
		if !errors.As(err, new(*node.Refused)) {
			return t, alone, err
		}
		if err := c.Refused(ctx, e); err != nil {
			return nil, false, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, false, err
		}
	}
}

func (q *Queue) enterOnce(ctx context.Context, e *zkconn.Epoch, old *Ticket) (t *Ticket, alone bool, err error) {
	n, err := node.Make(ctx, e, node.Spec{
		Dir: q.Dir, ACL: q.ACL, Plain: q.readOnlyDir,
		Name:  func(uuid string) string { return entryPrefix(q.Kind, uuid, q.Weight) },
		Data:  q.Data,
		Flags: zk.FlagEphemeral | zk.FlagSequence,
		Before: func() []any {
			if q.Config != nil {
				return q.Config.Check()
			}
			if old == nil {
				return nil
			}
			return []any{&zk.DeleteRequest{Path: old.Node, Version: -1}}
		},
		Tried: func(applied bool) {
			if old == nil {
				return
			}
			if applied {
				old.Forget()
			} else {
				old.Leave(0) // only a clean answer says that the transaction removed it
			}
			old = nil
		},
	})
	if old != nil {
		old.Leave(0)
	}
	if err != nil {
		return nil, false, err
	}
	return q.entered(n)
}

// entered makes a ticket of a node that was made.
func (q *Queue) entered(n *node.Node) (t *Ticket, alone bool, err error) {
	self, ok := ParseEntry(n.Name)
	if !ok || self.UUID != n.UUID {
		node.Abandon(n.Epoch, q.Dir, n.UUID)
		return nil, false, fmt.Errorf("the servers made node %q, which is not what was asked for", n.Name)
	}
	self.Czxid = n.Czxid
	alone = n.Dir != nil && n.Dir.NumChildren == 1 && len(q.blockers(nil, self)) == 0
	t = newTicket(q, n.Epoch, self, n.Path, !alone)
	t.first = n.Dir != nil && n.Dir.Cversion == 1
	return t, alone, nil
}
